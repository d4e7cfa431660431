"""Decoding JSON that is not quite JSON: exactly where that is possible, by `json_repair` where it is not.

Exact ways come first because a repair guesses. It must never guess a number: whatever the end of the text
may have cut off is taken away before anything is decoded.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:(?P<closing>")|\\?\Z)'
"""A double-quoted string, or one that never ends: so that scanning stays linear on hostile text."""
FALSEHOOD_NAME = r"(?:falsehood|falsity|falseness|f)"
_SCORE_KEY = (
    rf"(?<![a-z])(?:truth|indeterminacy|{FALSEHOOD_NAME}|t|i)(?![a-z])"
    r"""[^:"'\n{}]{0,20}+["'”]?\s{0,9}:\s{0,9}"""
)

_BLEMISH = re.compile(
    rf"(?P<kept>{STRING})|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|,(?=\s*+[}}\]])", re.DOTALL
)
_STRUCTURE = re.compile(rf"{STRING}|[{{}}\[\],]", re.DOTALL)
_CUT_SCORE = re.compile(
    _SCORE_KEY + r"""(?:["'“][^"'”]*|[-+.0-9][-+.0-9eE%/]*(?:\s+o\w*(?:\s+\w*){0,2})?)\Z""", re.IGNORECASE
)
_CUT_NUMBER = re.compile(r"[-+.0-9eE]\Z")
_UNCOMMON_SCORE = re.compile(
    rf"(?P<key>{_SCORE_KEY})(?P<value>[-+.]?[0-9][^,}}\]\n\"'/#]*(?:/\s*[0-9][^,}}\]\n\"'/#]*)?)",
    re.IGNORECASE,
)
_COMMON_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")

_LENIENT = json.JSONDecoder(strict=False)
_LONGEST_TAIL = 300
_DEEPEST = 50
_REPAIRABLE = {r"[{}\[\]()]": 100, r"\\": 100, r"[\"'“”`]": 400}
"""How many of these `json_repair` may be given: its time grows with their square or worse."""
_LONGEST_REPAIRABLE = 8_000
_DEEPEST_REPAIRABLE = 8


def decoded(text: str) -> dict[str, Any] | None:
    """The object a text spells in plain JSON; line breaks within strings are let pass."""
    try:
        value = _LENIENT.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def mended(text: str) -> dict[str, Any] | None:
    """The object in a text whose braces match but which is no plain JSON."""
    ways = (_tidied(version) for version in _undoubled(text))
    exact = next(filter(None, map(decoded, ways)), None)
    return exact if exact is not None else _repaired(next(_undoubled(text)), cut=False)


def completed(text: str, *, cut: bool) -> dict[str, Any] | None:
    """What is whole of an object that never ends; `cut` says that the reply itself ends where it does."""
    start = next(_undoubled(text))
    if cut:
        start = _without_cut_score(start)
    exact = next(filter(None, map(decoded, _endings(_tidied(start)))), None)
    return exact if exact is not None else _repaired(start, cut=cut)


def _undoubled(text: str) -> Iterator[str]:
    """The text with the braces of a format string made single, if it starts with doubled ones."""
    if re.match(r"\{\s*\{", text):
        yield re.sub(r"\}\s*\}", "}", re.sub(r"\{\s*\{", "{", text))
        yield text[1:].rstrip().removesuffix("}")
    else:
        yield text


def _tidied(text: str) -> str:
    """The text without comments and trailing commas."""
    return _BLEMISH.sub(lambda match: match["kept"] or "", text)


def _without_cut_score(text: str) -> str:
    """The text without a score at its very end, of which more digits may have been on their way."""
    cut = _CUT_SCORE.search(text, max(0, len(text) - _LONGEST_TAIL))
    return text[: cut.start()].rstrip("\"'“ \t\n") if cut else text


def _endings(text: str) -> Iterator[str]:
    """The ways a cut-off object can be ended: where it stops, or after its last whole member."""
    closers = ""
    whole = (0, "")
    unclosed: int | None = None
    for match in _STRUCTURE.finditer(text):
        token = match[0]
        if token in "{[":
            closers = ("}" if token == "{" else "]") + closers
            if len(closers) > _DEEPEST:
                return
            whole = (match.end(), closers)
        elif token == ",":
            whole = (match.start(), closers)
        elif token in "}]":
            closers = closers[1:]
        elif match["closing"] is None:
            unclosed = match.start()
    if unclosed is not None:
        yield f'{text}"{closers}'
        escape = text.rfind("\\")
        if escape > unclosed:
            yield f'{text[:escape]}"{closers}'
    elif not _CUT_NUMBER.search(text):
        yield text + closers
    yield text[: whole[0]] + whole[1]


def _repaired(text: str, *, cut: bool) -> dict[str, Any] | None:
    # Imported here because most replies need no repair and the command line should start fast.
    import json_repair

    head = _repairable_head(text)
    if cut or len(head) < len(text):
        head = _without_cut_score(head)
    try:
        value = json_repair.loads(_UNCOMMON_SCORE.sub(_quoted, head), skip_json_loads=True)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    if isinstance(value, list):
        value = next((each for each in value if isinstance(each, dict)), None)
    return value if isinstance(value, dict) else None


def _quoted(match: re.Match[str]) -> str:
    """A score such as `7/10` or `0.` put in quotes, else the repair would take the part that is a number."""
    value = match["value"].strip()
    return match[0] if _COMMON_NUMBER.fullmatch(value) else f'{match["key"]}"{value}"'


def _repairable_head(text: str) -> str:
    head = text[:_LONGEST_REPAIRABLE]
    for kind, most in _REPAIRABLE.items():
        for count, match in enumerate(re.finditer(kind, head)):
            if count == most:
                head = head[: match.start()]
                break
    depth = 0
    for match in re.finditer(r"[{\[(]|[}\])]", head):
        depth = depth + 1 if match[0] in "{[(" else max(0, depth - 1)
        if depth > _DEEPEST_REPAIRABLE:
            return head[: match.start()]
    return head
