"""Numbers that a voice states in prose: `**Truth (T):** 0.8`, `falsehood score of .7`, `| F | 7/10 |`.

A reply also names these words where it states nothing: a range, a template, a threshold, a peer's number, a
line of the prompt. These are excluded here; the last remaining number counts.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from firecircle.circle.reading.evidence import Quotations

if TYPE_CHECKING:
    from collections.abc import Callable

    from firecircle.circle.reading.evidence import Evidence
    from firecircle.circle.reading.members import Dimension

DECIMAL = r"(?:[0-9]+(?:[.,][0-9]+)?|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?"
SCALE = r"(?:\s{0,3}%|\s{0,3}(?:/|out\s{1,3}of)\s{0,3}(?:100|10|1)(?:\.0+)?(?![0-9.,]*[0-9]))"

_FIGURE = re.compile(
    rf"\s*[~≈+]?\s*(?P<number>{DECIMAL})(?P<scale>{SCALE})?\s*(?:[-–—(,;:][^0-9]*)?", re.IGNORECASE
)
_DECLARED = re.compile(
    r"\bscale\b[^0-9\n]{0,20}(?<![0-9.])0\s*(?:-|–|—|to)\s*(?P<after>100?)(?![0-9.,]*[0-9])"
    r"|(?<![0-9.,])0\s*(?:-|–|—|to)\s*(?P<before>100?)\s+scale\b",
    re.IGNORECASE,
)


class Figure(NamedTuple):
    """A number as written, and the scale next to it: 1, 10, 100, or None."""

    value: float
    scale: int | None = None


class Scores(NamedTuple):
    """Three numbers in [0, 1]."""

    truth: float
    indeterminacy: float
    falsehood: float
    imputed: tuple[str, ...] = ()


def figure(value: object) -> Figure | None:
    """The number in a JSON value: a number, or a text such as `0.7`, `7/10`, `70%`."""
    if type(value) is float and 0 <= value <= 1:  # as nearly all are
        return Figure(value)
    if isinstance(value, str):
        match = _FIGURE.fullmatch(value) if len(value) <= 200 else None
        return written_figure(match["number"], match["scale"]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return Figure(number) if math.isfinite(number) and number >= 0 else None


def written_figure(number: str, scale: str | None) -> Figure | None:
    """The number of a text that matched `DECIMAL`, with the `SCALE` next to it."""
    value = float(number.replace(",", "."))
    if not math.isfinite(value):
        return None
    if not scale:
        return Figure(value)
    return Figure(value, 100 if "%" in scale else int(float(scale.lower().split("of")[-1].strip("/ \t\n"))))


def declared_scale(text: str) -> int | None:
    """The scale, 10 or 100, that a text declares for its numbers."""
    match = _DECLARED.search(text)
    return int(match["after"] or match["before"]) if match else None


def settle(
    truth: Figure | None,
    indeterminacy: Figure | None,
    falsehood: Figure | None,
    declared: Callable[[], int | None],
) -> Scores | None:
    """Three figures as scores, or None if they do not state falsehood.

    Another scale than [0, 1] is accepted only if all three figures are on it. `declared` returns the scale
    named elsewhere; it is called only if a figure above 1 shows that there must be one. If a scale is named
    and the three do not fit it, a 1 may mean a tenth: then falsehood is not stated.
    """
    if truth and indeterminacy and falsehood:  # as in nearly all replies
        values = (truth.value, indeterminacy.value, falsehood.value)
        if truth.scale is indeterminacy.scale is falsehood.scale is None and max(values) <= 1:
            return Scores(*values)
    given = [each for each in (truth, indeterminacy, falsehood) if each]
    scales = {each.scale for each in given}
    if scales == {None} and any(each.value > 1 for each in given):
        scale = declared()
        if scale and (len(given) < 3 or any(each.value > scale for each in given)):
            return None
    else:
        scale = scales.pop() if len(scales) == 1 and len(given) == 3 else None
    if scale in (10, 100) and all(each.value <= scale for each in given):
        first, second, third = (each.value / scale for each in given)
        return Scores(first, second, third)
    plain_truth, plain_indeterminacy, plain_falsehood = map(_plain, (truth, indeterminacy, falsehood))
    if plain_falsehood is None:
        return None
    imputed = []
    if plain_truth is None:
        plain_truth = 1.0 - plain_falsehood
        imputed.append("truth")
    if plain_indeterminacy is None:
        plain_indeterminacy = 0.5
        imputed.append("indeterminacy")
    return Scores(plain_truth, plain_indeterminacy, plain_falsehood, tuple(imputed))


def _plain(written: Figure | None) -> float | None:
    if written is None or written.scale not in (None, 1) or written.value > 1:
        return None
    return written.value


_DIMENSIONS: Final[dict[str, Dimension]] = {"t": "truth", "i": "indeterminacy", "f": "falsehood"}

_LONG = r"(?i:truth|indeterminacy|falsehood|falsity|falseness)"
_MARK = r"\s++|[*_`\"'“”\\~≈:=|(–—−-]|[-=]>|→"
_ASIDE = rf"\((?!\s*{DECIMAL}{SCALE}?\s*\))[^()\n]{{1,60}}\)"
_MOVE = (
    r"(?i:ris(?:es?|en|ing)|rose|rais(?:es?|ed|ing)|increas(?:es?|ed|ing)|grow(?:s|n|ing)?|grew|go(?:es|ne|ing)?|went"
    r"|climb(?:s|ed|ing)?|jump(?:s|ed|ing)?|mov(?:es?|ed|ing)|chang(?:es?|ed|ing)|shift(?:s|ed|ing)?"
    r"|drop(?:s|ped|ping)?|fall(?:s|en|ing)?|fell|decreas(?:es?|ed|ing)|lower(?:s|ed|ing)?|revis(?:es?|ed|ing)"
    r"|updat(?:es?|ed|ing)|adjust(?:s|ed|ing)?|up|down|has|have)(?![a-z])"
)
"""A score may be said to move: `rises from 0.3 to 0.8` states 0.8, not 0.3."""
_LINK = (
    r"(?i:(?:score|value|level|rating|degree|component|is|was|of|at|as|to|be|being|set|now|still|remains|stays"
    r"|assigned|estimated|equals?|around|about|approximately|roughly|very|extremely|fairly|quite|relatively"
    r"|high|low|medium|moderate|minimal|negligible|strong|weak|none|an?|the)(?![a-z]))"
)
_CHANGE = (
    rf"(?:(?i:from)\s+{DECIMAL}{SCALE}?\s*(?:(?i:to)|→|[-=]>)"
    rf"|{DECIMAL}{SCALE}?\s*(?:→|[-=]>|(?:{_MOVE}\s+){{1,2}}(?i:to)))\s*"
)
_NOT_AFTER = (
    r"(?![\w%])(?!\.[0-9,}\]|])"
    r"(?!\s*[,;/|]\s*\.?[0-9])"
    r"(?!\s*(?:-|–|—|−|\.\.+|…|→|[-=]>|(?i:to|through)\b)\s*\.?[0-9])"
    r"(?!\s*\+)(?!\s*(?i:out\s+)?(?i:of)\s+[0-9])"
    r"(?!\s*(?i:or|and)\s+(?i:above|higher|more|greater|over|up|below|lower|less|under)\b)"
    r"(?!\s*(?i:means|would|denotes)\b)"
    rf"(?!\s+(?:{_MOVE}\s+){{1,2}}(?i:to)\b)"
)
_STATEMENT = re.compile(
    rf"(?<![\w/])(?:(?P<long>{_LONG})|(?P<short>[TIF])(?:\s?\(\s?{_LONG}\s?\))?)"
    rf"(?:[_ -]?(?i:score|value|level|rating|degree))?\)?(?!\w)"
    rf"(?P<gap>(?:{_ASIDE}|{_LINK}|{_MOVE}|{_MARK}){{1,24}}?)"
    rf"(?:{_CHANGE})?"
    rf"(?P<number>(?>{DECIMAL}))(?P<scale>{SCALE})?+{_NOT_AFTER}"
)
_TRIPLE = re.compile(
    r"(?<!\w)(?:T|(?i:truth))(?:\s?\(T\))?[^\w\n]{1,6}(?:I|(?i:indeterminacy))(?:\s?\(I\))?[^\w\n]{1,6}"
    r"(?:F|(?i:falsehood))(?:\s?\(F\))?(?!\w)(?P<gap>[\s)\]>⟩*_`:=|(\[<⟨-]{1,60}?)"
    rf"(?P<t>{DECIMAL})\s*[,;/|]\s*(?P<i>{DECIMAL})\s*[,;/|]\s*(?P<f>{DECIMAL})(?![\w%])(?!\.[0-9])"
    r"(?!\s*[,;/]\s*\.?[0-9])"
)
_NAMED = re.compile(r"(?<![\w])(?:(?i:falsehood|falsity|falseness)|F(?!\w))")

_NOT_BEFORE = re.compile(
    r"(?:\b(?i:if|when|whenever|unless|until|suppose|threshold|instead\s+of|rather\s+than|not|than)\b"
    r"(?:[^.,;:\n]|\.(?=[0-9]))*"
    r"|\b(?:(?i:for\s+example|e\.g\.)|(?i:evaluators?)\s+[A-HJ-Z]\b|(?i:other\s+evaluators?|peers?|mean|average"
    r"|median|previous(?:ly)?|earlier|initial(?:ly)?|original(?:ly)?|minimum|maximum)\b)"
    r"(?:[^.;\n]|\.(?=[0-9]))*)\Z"
)
_CUT_AFTER = re.compile(r"(?:\s*/\s*[0-9.]*|\s+ou?t?(?:\s+o?f?)?\s*[0-9]*)?\Z")
_LIST_NUMBER = re.compile(r"[.)]\s")

LONGEST_PROSE = 100_000
"""No voice writes this much; otherwise the end is read, which has the conclusions."""
_REACH = 160
_MOST_STATEMENTS = 300
"""Counted from the end: the last one wins, so the first of thousands does not matter."""


def names_falsehood(text: str) -> bool:
    """Whether the text mentions falsehood."""
    return bool(_NAMED.search(text))


def stated_scores(text: str, evidence: Evidence) -> Scores | None:
    """The last statement of each score in a text, or None if falsehood is not stated."""
    text = text[-LONGEST_PROSE:]
    if not names_falsehood(text) and not _TRIPLE.search(text):
        return None
    last: dict[Dimension, Figure] = {}
    declared = declared_scale(text)
    quotations = Quotations(text)
    statements = [*_STATEMENT.finditer(text), *_TRIPLE.finditer(text)]
    looked_at = 0
    for statement in sorted(statements, key=lambda statement: statement.start(), reverse=True):
        figures = _figures(statement, declared)
        if figures.keys() <= last.keys():
            continue
        looked_at += 1
        if looked_at > _MOST_STATEMENTS:
            break
        if (
            _says_so(text, statement)
            and not quotations.around(*statement.span())
            and not evidence.echoes(text, *statement.span())
        ):
            last = figures | last
    return settle(last.get("truth"), last.get("indeterminacy"), last.get("falsehood"), lambda: declared)


def _figures(match: re.Match[str], declared: int | None) -> dict[Dimension, Figure]:
    """The stated figures by dimension; a number beyond its scale states nothing."""
    if match.re is _TRIPLE:
        written = {letter: written_figure(match[letter], None) for letter in "tif"}
    else:
        name = (match["long"] or match["short"])[0].lower()
        written = {name: written_figure(match["number"], match["scale"])}
    return {
        _DIMENSIONS[name]: figure
        for name, figure in written.items()
        if figure and (figure.value <= (figure.scale or 1) or (declared and not figure.scale))
    }


def _says_so(text: str, match: re.Match[str]) -> bool:
    gap = match["gap"]
    if match.re is _TRIPLE:
        return bool(re.search("[:=|]", gap)) and match.end() < len(text)
    if gap[-1] in "-−–":
        return False
    if match["short"] and not re.search(r"[:=|–—]|\b(?:is|of|at)\b", gap):
        return False
    if not gap.strip() and not re.search("[.,]", match["number"]):
        return False
    if "\n" in gap and ("|" in gap or _LIST_NUMBER.match(text, match.end())):
        return False
    if _is_cut(text, match):
        return False
    return not _NOT_BEFORE.search(text[max(0, match.start() - _REACH) : match.start()])


def _is_cut(text: str, match: re.Match[str]) -> bool:
    """Whether the text ends where the number could continue."""
    if (match["scale"] or "").endswith("%"):
        return False
    end = match.end()
    if not re.search("[.,]", match["number"]) and text.startswith(".", end) and end + 1 == len(text):
        return True
    return bool(_CUT_AFTER.match(text, end))
