"""Numbers a voice states in its prose: `**Truth (T):** 0.8`, `falsehood score of .7`, `| F | 7/10 |`.

A reply also names these words where it states nothing: a range, a template, a threshold, a peer's number,
a line of the prompt. Each of those is told apart here; what remains last is the voice's word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from firecircle.circle.reading.evidence import Quotations
from firecircle.circle.reading.numbers import (
    DECIMAL,
    SCALE,
    Figure,
    Scores,
    declared_scale,
    settled,
    written_figure,
)

if TYPE_CHECKING:
    from firecircle.circle.reading.evidence import Evidence
    from firecircle.circle.reading.members import Dimension

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
"""A score may be said to move: `rises from 0.3 to 0.8` states 0.8, and 0.3 not at all."""
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
"""No voice writes this much; of one that does, the end is read, where conclusions stand."""
_REACH = 160
_MOST_STATEMENTS = 300
"""Counted from the end: the last one wins, so the first of thousands does not matter."""


def names_falsehood(text: str) -> bool:
    """Whether the text speaks of falsehood at all."""
    return bool(_NAMED.search(text))


def stated_scores(text: str, evidence: Evidence) -> Scores | None:
    """The scores stated in a text, the last statement of each, or None when falsehood is not stated."""
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
    return settled(last.get("truth"), last.get("indeterminacy"), last.get("falsehood"), lambda: declared)


def _figures(match: re.Match[str], declared: int | None) -> dict[Dimension, Figure]:
    """What is stated of which dimension; a number beyond its scale states nothing."""
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
    """Whether a label and a number near it are a statement."""
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
    """Whether the text ends where the number could go on."""
    if (match["scale"] or "").endswith("%"):
        return False
    end = match.end()
    if not re.search("[.,]", match["number"]) and text.startswith(".", end) and end + 1 == len(text):
        return True
    return bool(_CUT_AFTER.match(text, end))
