"""Suggest a field map for a file whose rows cannot be used."""

from __future__ import annotations

import codecs
import json
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from firecircle.lab.datasets.record import LAYER_FIELDS, MAP_FIELDS, FieldMap, Row
from firecircle.names import Label

MOST_LABELS = 6
"""A column with more different values is not a label."""
LONGEST_LABEL = 30
_ATTACK_WORDS = """
y t ja si sí oui sim da да 是 はい spam phishing injection jailbreak harmful toxic bad evil hostile
adversarial positive suspicious angriff ataque attaque attacco атака 攻撃 攻击 hack fraud
"""
_BENIGN_WORDS = """
n f nein non não nao net нет 否 いいえ ham ok okay legit legitimate normal clean harmless good negative none
gutartig benigno bénin harmlos нормально 正常 genuine
"""
_ATTACK, _BENIGN = frozenset(_ATTACK_WORDS.split()), frozenset(_BENIGN_WORDS.split())


@dataclass(slots=True)
class Cure:
    """The likely fields and labels of a file."""

    fields: dict[str, str] = field(default_factory=dict)
    """Our field, and the file's name for it; empty if the file has none."""
    labels: dict[str, Label] = field(default_factory=dict)
    guessed: bool = False
    """Whether it is unknown which label value means attack."""

    def __bool__(self) -> bool:
        return bool(self.fields or self.labels)

    def in_plan(self) -> str:
        """As lines of a plan."""
        lines = [f"{name} = {_quote(column)}" for name, column in self.fields.items()]
        for label in ("attack", "benign"):
            values = [_quote(value) for value, meaning in self.labels.items() if meaning == label]
            if values:
                lines.append(f"{label} = [{', '.join(values)}]")
        return f"write under [datasets.fields]: {'; '.join(lines)}{self._doubt()}"

    def in_options(self) -> str:
        """As options of the command line."""
        options = [f"--field {_shell(f'{name}={column}')}" for name, column in self.fields.items()]
        options += [f"--label-map {_shell(f'{value}={label}')}" for value, label in self.labels.items()]
        return f"try {' '.join(options)}{self._doubt()}"

    def _doubt(self) -> str:
        return " (or attack and benign the other way round)" if self.guessed else ""


def cure_for(rows: Sequence[Row], field_map: FieldMap) -> Cure:
    """The field map that would make the first rows of a file readable; empty if there is no idea."""
    columns: dict[str, list[object]] = {}
    for row in rows:
        for name, cell in row.cells.items():
            columns.setdefault(name, []).append(cell)
    cure = Cure()
    mapped = [name for layer in LAYER_FIELDS for name in columns if name == field_map.name_of(layer)]
    if not any(_is_text(cell) for name in mapped for cell in columns[name]):
        texts = {name: cells for name, cells in columns.items() if any(map(_is_text, cells))}
        if texts:
            cure.fields["user"] = max(texts, key=lambda name: _mean_length(texts[name]))
    label = field_map.label if field_map.label in columns else None
    taken = {*(field_map.name_of(name) for name in MAP_FIELDS), *cure.fields.values()}
    if label is None or _values(columns[label]) is None:
        likely = next(
            (name for name in columns if name not in taken and _looks_like_label(columns[name])), None
        )
        if likely is not None:
            cure.fields["label"] = likely
        elif label is not None:
            cure.fields["label"] = ""
        label = likely
    if label is not None:
        values = _values(columns[label]) or ()
        if not all(map(field_map.knows_label, values)):
            _guess_labels(cure, values)
    turns = columns.get(field_map.turns or "", ())
    if any(turn is not None and not isinstance(turn, list | tuple) and not _is_list(turn) for turn in turns):
        cure.fields["turns"] = ""
    return cure


def _guess_labels(cure: Cure, values: Collection[str]) -> None:
    usual = FieldMap()
    for value in values:
        folded = value.casefold()
        if usual.knows_label(value):
            if meaning := usual.label_of(value):
                cure.labels[value] = meaning
        elif folded in _ATTACK or folded in _BENIGN:
            cure.labels[value] = "attack" if folded in _ATTACK else "benign"
    unknown = [value for value in values if value not in cure.labels and not usual.knows_label(value)]
    for value in unknown:
        meanings = set(cure.labels.values())
        cure.labels[value] = "benign" if "attack" in meanings else "attack"
    cure.guessed = len(unknown) > 1 or (bool(unknown) and len(cure.labels) == 1)


def _values(cells: Sequence[object]) -> Mapping[str, None] | None:
    values = dict.fromkeys(str(cell).strip() for cell in cells if cell is not None and str(cell).strip())
    fits = len(values) <= MOST_LABELS and all(len(value) <= LONGEST_LABEL for value in values)
    return values if values and fits else None


def _looks_like_label(cells: Sequence[object]) -> bool:
    values = _values(cells)
    if values is None or (len(values) < 2 and len(cells) > 1):
        return False
    usual = FieldMap()
    known = {value for value in values if usual.knows_label(value) or value.casefold() in _ATTACK | _BENIGN}
    return len(known) == len(values) or (len(values) == 2 and len(cells) > 4)


def _is_text(cell: object) -> bool:
    return isinstance(cell, str) and bool(cell.strip())


def _is_list(cell: object) -> bool:
    return isinstance(cell, str) and (not cell.strip() or cell.lstrip().startswith("["))


def _mean_length(cells: Sequence[object]) -> float:
    return fmean(len(cell) if isinstance(cell, str) else 0 for cell in cells)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _shell(text: str) -> str:
    from shlex import quote

    return quote(text)


# Detect the encoding of a text file that is not UTF-8, so that the error can name it

ENCODING_GLANCE = 65_536
"""Bytes used to detect a file's encoding."""
_CANDIDATES = (
    ("SHIFT_JIS", ("HIRAGANA", "KATAKANA"), 0.2),
    ("EUC-JP", ("HIRAGANA", "KATAKANA"), 0.2),
    ("EUC-KR", ("HANGUL",), 0.7),
    ("BIG5", ("CJK UNIFIED",), 0.7),
    ("GB18030", ("CJK UNIFIED",), 0.6),
    ("WINDOWS-1253", ("GREEK SMALL",), 0.7),
    ("WINDOWS-1251", ("CYRILLIC SMALL",), 0.7),
    ("KOI8-R", ("CYRILLIC SMALL",), 0.7),
    ("WINDOWS-1255", ("HEBREW",), 0.7),
    ("WINDOWS-1256", ("ARABIC",), 0.7),
)
"""Encodings, the letters of texts in them, and the least share of these among non-ASCII characters."""
WESTERN = "WINDOWS-1252"
FEW = 0.3
"""Western texts have a smaller share of non-ASCII bytes among their letters."""
_BIG5_ONLY = frozenset("這個們來說對時會過嗎後點國學問給還讓請無題從將與為於")
"""Common characters that have another form where GB18030 is used."""


def foreign_encoding(beginning: bytes) -> str | None:
    """The encoding of a text with this beginning, by its iconv name; None for UTF-8."""
    if beginning.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "UTF-32"
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    zeros = [beginning[start::2].count(0) > len(beginning) // 5 for start in (0, 1)]
    if zeros[0] != zeros[1]:
        return "UTF-16BE" if zeros[0] else "UTF-16LE"
    return None if _is_mostly_utf8(beginning) else likely_encoding(beginning)


def _is_mostly_utf8(beginning: bytes) -> bool:
    """Wrong bytes only cost their row, but a text that is mostly wrong is in another encoding."""
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(beginning)
    beyond = [character for character in text if not character.isascii()]
    wrong = sum("\udc80" <= character <= "\udcff" for character in beyond)
    spoilt = sum(any("\udc80" <= character <= "\udcff" for character in line) for line in text.splitlines())
    return spoilt < 2 or 2 * wrong <= len(beyond)


def likely_encoding(beginning: bytes) -> str:
    """For a text that is not UTF-8: the first encoding whose letters it has, otherwise the western one."""
    letters = sum(chr(byte).isalpha() for byte in beginning if byte < 128)
    beyond = sum(byte >= 128 for byte in beginning)
    if beyond < FEW * (letters + beyond):
        return WESTERN
    return next(
        (name for name, scripts, least in _CANDIDATES if _fits(beginning, name, scripts, least)), WESTERN
    )


def _fits(beginning: bytes, encoding: str, scripts: tuple[str, ...], least: float) -> bool:
    try:
        text = codecs.getincrementaldecoder(encoding)("strict").decode(beginning)
    except UnicodeDecodeError:
        return False
    beyond = [character for character in text if not character.isascii()]
    if encoding == "BIG5" and not _BIG5_ONLY.intersection(beyond):
        return False
    of_script = sum(unicodedata.name(character, "").startswith(scripts) for character in beyond)
    return of_script >= least * len(beyond)


def not_utf8(what: str, encoding: str) -> str:
    """The error for a text in another encoding; one detected by its letters is a guess."""
    if encoding.startswith("UTF"):
        return f"{what} is {encoding}, not UTF-8"
    return f"{what} is not UTF-8, most likely {encoding}"
