"""Which characters hide, reorder or steer. Prompts and replies are hostile: every screen asks here.

A terminal leaves such characters out and a page names them; which they are is decided once. On a page a mark
such as ⟨U+202E⟩ is always ours: where a text itself writes ⟨U+, its bracket is marked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, Protocol

HIDDEN_RANGES = (
    (0x0000, 0x0008),  # controls, but for tab and line feed
    (0x000B, 0x001F),
    (0x007F, 0x009F),
    (0x00A0, 0x00A0),  # spaces that look like the common one
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # grapheme joiner
    (0x0600, 0x0605),  # signs that span numbers
    (0x061C, 0x061C),  # direction marks
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x115F, 0x1160),  # fillers that look like nothing
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200A),  # more spaces
    (0x200B, 0x200F),  # zero width, and more direction marks
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),  # braille without a dot
    (0x3164, 0x3164),
    (0xD800, 0xF8FF),  # surrogates, private use
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),  # joiners of hieroglyphs
    (0x16FE4, 0x16FE4),
    (0x1BCA0, 0x1BCA3),  # shorthand
    (0x1D159, 0x1D159),  # music
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),  # tags
    (0xF0000, 0x10FFFF),  # private use
    *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, 0xF0000, 0x10000)),  # no characters at all
)
"""Characters that cannot be seen or told apart, or move others. Tab and line feed are none of them, nor is
the wide space of Chinese and Japanese."""

UNUSUAL_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f"

STACKING_RANGES = (
    (0x0300, 0x036F),
    (0x0483, 0x0489),
    (0x0591, 0x05BD),
    (0x0610, 0x061A),
    (0x064B, 0x065F),
    (0x06D6, 0x06DC),
    (0x0E34, 0x0E3A),
    (0x0E47, 0x0E4E),
    (0x0EB4, 0x0EBC),
    (0x0EC8, 0x0ECE),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20F0),
    (0x3099, 0x309A),
    (0xA66F, 0xA67D),
    (0xFE20, 0xFE2F),
)
"""Marks that are drawn on the letter before them."""
MOST_STACKED = 4
"""Marks on one letter; any more would only smear over the lines around it."""

TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor, erasing
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-~]?"  # everything else that begins with escape
)
"""What steers a terminal, whole: without the escape alone its rest would look like words."""
LINE_BREAKS = "\r\v\f\x85\u2028\u2029"
"""Characters that break a line as a line feed does."""


def _class(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_STACKED = f"[{_class(STACKING_RANGES)}]"
_CONTROL = re.compile(r"([\x00-\x08\x0b-\x1f\x7f])\1*")
_HIDDEN = re.compile(f"([{_class(HIDDEN_RANGES)}])\\1*")
_TOWER_OR_MARK = re.compile(f"{_STACKED}{{{MOST_STACKED + 1}}}|⟨U\\+")
_MARKED = re.compile(f"([{_class(HIDDEN_RANGES)}]|(?<={_STACKED}{{{MOST_STACKED}}}){_STACKED}|⟨(?=U\\+))\\1*")
"""As `_HIDDEN`, and what a page marks besides: towers of accents, and what would pass for a mark of ours."""
_BREAKS = re.compile(r"[ \t\n\r]+")
_NAMES = {"\x00": "NULL", "\x1b": "ESCAPE", "\x08": "BACKSPACE", "\r": "CARRIAGE RETURN", "\x7f": "DELETE"}
_JOINER, _AS_PICTURE = "\u200d", "\ufe0f"
_FIRST_PICTOGRAM = "\u2190"
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._:/@~+#-]+")


class SafeLine(Protocol):
    """How a screen or page writes foreign text on one line so that nothing hides in it or steers it."""

    def __call__(self, text: str, longest: int | None = None, /) -> str:
        """The text, cut off if it is longer than allowed."""
        ...


class HiddenRun(NamedTuple):
    """The same hidden character, once or several times in a row."""

    character: str
    start: int
    end: int

    @property
    def code(self) -> str:
        """Its number, and how often it stands there."""
        times = self.end - self.start
        return f"U+{ord(self.character):04X}{f'×{times}' if times > 1 else ''}"

    @property
    def name(self) -> str:
        """Its number and the name it has in Unicode."""
        name = unicodedata.name(self.character, _NAMES.get(self.character, "control character"))
        return f"U+{ord(self.character):04X} {name}"


def hidden_runs(text: str) -> Iterator[HiddenRun]:
    """Every character of a text that gets a mark. The joints that pictograms are built with get none."""
    pattern, place = _pattern_for(text), 0
    while match := pattern.search(text, place):
        start, place = match.span()
        if _joins_emoji(text, start):
            place = start + 1
            continue
        yield HiddenRun(match[1], start, place)


def without_hidden(text: str) -> str:
    """The text as if hidden characters were not there, the joints of pictograms included."""
    return (_CONTROL if text.isascii() else _HIDDEN).sub("", text)


_TO_PLAIN = str.maketrans(
    {"\t": "    ", **dict.fromkeys(LINE_BREAKS, "\n"), **dict.fromkeys(UNUSUAL_SPACES, " ")}
)


def printable(text: str) -> str:
    """The text without terminal sequences and hidden characters. Line breaks survive, tabs become spaces."""
    plain = without_hidden(TERMINAL_SEQUENCE.sub("", text.replace("\r\n", "\n")).translate(_TO_PLAIN))
    return plain if plain.isascii() else _without_towers(plain)


def printable_line(text: str, longest: int | None = None) -> str:
    """As `printable`, on one line, cut off if it is longer than allowed."""
    line = " ".join(printable(text).split())
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def _without_towers(text: str) -> str:
    """The text with no more than a few accents on each letter."""
    characters: list[str] = []
    accents = 0
    for character in text:
        is_accent = not character.isascii() and unicodedata.category(character) in ("Mn", "Me")
        accents = accents + 1 if is_accent else 0
        if accents <= MOST_STACKED:
            characters.append(character)
    return "".join(characters)


def with_codes(text: str) -> str:
    """The text with the number of every hidden character in its place."""
    return _pattern_for(text).sub(_mark, text)


def _mark(match: re.Match[str]) -> str:
    times, joint = match.end() - match.start(), ""
    if _joins_emoji(match.string, match.start()):
        times, joint = times - 1, match[1]
    return joint + (_code(match[1], times) if times else "")


def marked_pattern() -> str:
    """What gets a mark, as a pattern for scripts: what they write on a page follows the same rule."""
    hidden, stacked = (
        "".join(
            f"\\u{{{first:x}}}-\\u{{{last:x}}}" if first < last else f"\\u{{{first:x}}}"
            for first, last in ranges
        )
        for ranges in (HIDDEN_RANGES, STACKING_RANGES)
    )
    return f"[{hidden}]|(?<=[{stacked}]{{{MOST_STACKED}}})[{stacked}]|⟨(?=U\\+)"


def line_with_codes(text: str, longest: int | None = None) -> str:
    """As `with_codes`, on one line, cut off if it is longer than allowed."""
    if longest is None:
        return with_codes(_on_one_line(text))
    line = _on_one_line(text[: longest * 4])
    is_cut = len(line) > longest or len(text) > longest * 4
    return f"{with_codes(line[:longest])}{'…' if is_cut else ''}"


@lru_cache(maxsize=1024)
def name_with_codes(name: str, longest: int | None = None) -> str:
    """A name that somebody else chose. One that could pass for words of ours stands in quotes."""
    line = line_with_codes(name, longest)
    return line if _PLAIN_NAME.fullmatch(name) else f"“{line.replace('”', '⟨U+201D⟩')}”"


def quoted_name(name: str) -> str:
    """The same for words that are shown later, and marked then: quotes only, hidden characters stay."""
    inside = name.replace("”", '"')
    return name if _PLAIN_NAME.fullmatch(name) else f"“{inside}”"


def without_formula(text: str) -> str:
    """A text for a table that may be opened in a spreadsheet: nothing in it begins a formula there."""
    return f"'{text}" if text.lstrip(_SPACES).startswith(_BEGIN_FORMULAS) or text[:1] in _CONTROLS else text


_SPACES = " \u00a0\u3000\ufeff"
_CONTROLS = ("\t", "\r", "\n")
_BEGIN_FORMULAS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def shortened(name: str, longest: int) -> str:
    """The name with its middle left out, so that what tells it apart at either end stays."""
    if len(name) <= longest:
        return name
    tail = max(0, longest - 1) // 3
    return f"{name[: longest - 1 - tail]}…{name[len(name) - tail :]}"


def line_quoting(names: Iterable[str]) -> SafeLine:
    """As `line_with_codes`, for sentences in which these names stand."""
    known = frozenset(names)

    def line(text: str, longest: int | None = None, /) -> str:
        return name_with_codes(text, longest) if text in known else line_with_codes(text, longest)

    return line


def _on_one_line(text: str) -> str:
    return _BREAKS.sub(" ", text).strip()


def _pattern_for(text: str) -> re.Pattern[str]:
    """Most texts are long and plain, and a short list is searched ten times faster."""
    if text.isascii():
        return _CONTROL
    return _MARKED if _TOWER_OR_MARK.search(text) else _HIDDEN


@lru_cache(maxsize=4096)
def _code(character: str, times: int) -> str:
    return f"⟨{HiddenRun(character, 0, times).code}⟩"


def _joins_emoji(text: str, place: int) -> bool:
    """Whether this is the joint that a pictogram is built with, and nothing smuggled in."""
    joint = text[place]
    if place == 0 or joint not in (_JOINER, _AS_PICTURE):
        return False
    before = place - 1
    if joint == _AS_PICTURE:
        return _is_pictogram(text[before])
    if before and (text[before] == _AS_PICTURE or _SKIN_TONES[0] <= text[before] <= _SKIN_TONES[1]):
        before -= 1
    return _is_pictogram(text[before]) and place + 1 < len(text) and _is_pictogram(text[place + 1])


def _is_pictogram(character: str) -> bool:
    return character >= _FIRST_PICTOGRAM and unicodedata.category(character) == "So"
