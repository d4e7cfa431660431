"""Find the voice's own verdict object among prose, drafts, templates and quoted payloads."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from firecircle.circle.reading.members import VerdictObject, verdict_object
from firecircle.circle.reading.stated import declared_scale

if TYPE_CHECKING:
    from collections.abc import Iterator

    from firecircle.circle.reading.evidence import Evidence

STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:(?P<closing>")|\\?\Z)'
"""A double-quoted string, or one that never ends, so that scanning is linear on hostile text."""
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
"""The most of these for `json_repair`, whose time grows with their square or worse."""
_LONGEST_REPAIRABLE = 8_000
_DEEPEST_REPAIRABLE = 8


def decode(text: str) -> dict[str, Any] | None:
    """The object in plain JSON; allows line breaks within strings."""
    try:
        value = _LENIENT.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def repair(text: str) -> dict[str, Any] | None:
    """The object in a text whose braces match but which is not plain JSON."""
    ways = (_tidy(version) for version in _single_braces(text))
    exact = next(filter(None, map(decode, ways)), None)
    return exact if exact is not None else _repair(next(_single_braces(text)), cut=False)


def complete(text: str, *, cut: bool) -> dict[str, Any] | None:
    """The complete part of an object that never ends; `cut` says that the reply ends there too."""
    start = next(_single_braces(text))
    if cut:
        start = _without_cut_score(start)
    exact = next(filter(None, map(decode, _endings(_tidy(start)))), None)
    return exact if exact is not None else _repair(start, cut=cut)


def _single_braces(text: str) -> Iterator[str]:
    if re.match(r"\{\s*\{", text):
        yield re.sub(r"\}\s*\}", "}", re.sub(r"\{\s*\{", "{", text))
        yield text[1:].rstrip().removesuffix("}")
    else:
        yield text


def _tidy(text: str) -> str:
    return _BLEMISH.sub(lambda match: match["kept"] or "", text)


def _without_cut_score(text: str) -> str:
    """The text without a score at its very end, which may lack digits."""
    cut = _CUT_SCORE.search(text, max(0, len(text) - _LONGEST_TAIL))
    return text[: cut.start()].rstrip("\"'“ \t\n") if cut else text


def _endings(text: str) -> Iterator[str]:
    """The ways to complete a cut object: where it stops, or after its last whole member."""
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


def _repair(text: str, *, cut: bool) -> dict[str, Any] | None:
    # Imported here because most replies need no repair and the command line should start fast.
    import json_repair

    head = _repairable_head(text)
    if cut or len(head) < len(text):
        head = _without_cut_score(head)
    try:
        value = json_repair.loads(_UNCOMMON_SCORE.sub(_quote_score, head), skip_json_loads=True)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    if isinstance(value, list):
        value = next((each for each in value if isinstance(each, dict)), None)
    return value if isinstance(value, dict) else None


def _quote_score(match: re.Match[str]) -> str:
    """Quote a score such as `7/10` or `0.`, otherwise the repair would use only its first number."""
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


_FALSEHOOD_KEY = re.compile(
    rf"""(?<![a-z]){FALSEHOOD_NAME}(?![a-z])[^:"'\n{{}}]{{0,20}}+["'”]?\s{{0,9}}:""", re.IGNORECASE
)
_OPENING = r"""\{(?=\s*+(?:\{\s*+)?(?:["'“]|[A-Za-z_][\w ()-]{0,40}["'”]?\s{0,9}:|//|/\*|\#))"""
_OBJECT = re.compile(_OPENING)
_OBJECT_ON_NEW_LINE = re.compile(
    rf"^(?P<indent>[ \t]*)(?:`{{3,}}\w*[ \t]*)?(?P<brace>{_OPENING})", re.MULTILINE
)
_BRACE = re.compile(rf"{STRING}|[{{}}]", re.DOTALL)
_DOUBLED = re.compile(r"\{\s*+\{")
_FENCE = re.compile(r"\n[ \t]*```")

_USUAL_KEY = '"falsehood":'
"""The usual spelling, which is found much faster."""
_MOST_KEYS = 3_000
_MOST_RESTARTS = 4
_MOST_MENDED = 3
"""Restarts and repairs are slow: a hostile reply may not cause many."""


class Candidate(NamedTuple):
    """A stretch of the reply that may be a verdict object."""

    start: int
    end: int
    closed: bool
    value: dict[str, Any] | None
    """The decoded object if it is plain JSON."""


class Objects:
    """The objects in an answer that mention falsehood."""

    def __init__(self, text: str, evidence: Evidence) -> None:
        self._text = text
        self._evidence = evidence
        self._own: list[Candidate] = []  # last one first
        self.without_evidence = text
        """The answer with blanks for the objects that come from the judged text."""
        kept: list[str] = []
        position = len(text)
        for candidate in reversed(_candidates(text)):
            start, end = candidate.start, _end_of_block(text, candidate)
            if evidence.holds(_within_doubled_braces(text[start:end])):
                kept += [text[end:position], " " * (min(end, position) - start)]
                position = start
            else:
                self._own.append(candidate)
        if kept:
            self.without_evidence = text[:position] + "".join(reversed(kept))

    def verdict(self, *, complete_only: bool = False) -> VerdictObject | None:
        """The last complete object that states falsehood; otherwise the last one that was cut off."""
        for closed in (True,) if complete_only else (True, False):
            mendings = _MOST_MENDED
            for candidate in self._own:
                if candidate.closed is not closed:
                    continue
                value = candidate.value
                if value is None:
                    if not mendings:
                        continue
                    mendings -= 1
                    value = self._repair_candidate(candidate)
                verdict = (
                    verdict_object(value, lambda: self._declared_scale, self._evidence) if value else None
                )
                if verdict is not None:
                    return verdict
        return None

    @cached_property
    def _declared_scale(self) -> int | None:
        return declared_scale(self.without_evidence)

    def _repair_candidate(self, candidate: Candidate) -> dict[str, Any] | None:
        # A stray brace before a quoted payload must not make it the voice's: only unquoted text counts.
        end = _end_of_block(self._text, candidate)
        text = self.without_evidence[candidate.start : end]
        return repair(text) if candidate.closed else complete(text, cut=end == len(self._text))


def _candidates(text: str) -> list[Candidate]:
    """Every outermost object with a falsehood key, in order.

    One that never ends, or ends but is not JSON, may really be a stray brace before the answer, and may end
    in the middle of it. So the search restarts at the next object that begins a line with no deeper indent;
    an object within it has a deeper indent or follows something on its line, and stays a part of it.
    """
    if (whole := _whole(text)) is not None:
        return [whole]
    keys = [key.start() for key in _FALSEHOOD_KEY.finditer(text)]
    candidates: list[Candidate] = []
    restarts = _MOST_RESTARTS
    position = keys[-_MOST_KEYS] if len(keys) > _MOST_KEYS else 0
    while keys and (opening := _OBJECT.search(text, position)):
        start = opening.start()
        key = bisect_left(keys, start)
        if key == len(keys):
            break
        end = _closing(text, start)
        closed = end is not None
        end = len(text) if end is None else end
        position = end
        value = decode(text[start:end]) if closed else None
        if keys[key] < end:
            candidates.append(Candidate(start, end, closed, value))
        if value is not None:
            continue
        again = _restart(text, start, end) if restarts else None
        if again is not None:
            position = again
            restarts -= 1
    return candidates


def _whole(text: str) -> Candidate | None:
    """A reply that is only an object, as most are, needs no search."""
    start = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    if not (text.startswith("{", start) and text.endswith("}", start, end) and _OBJECT.match(text, start)):
        return None
    value = decode(text[start:end])
    if value is None or not (_USUAL_KEY in text or _FALSEHOOD_KEY.search(text, start, end)):
        return None
    return Candidate(start, end, True, value)


def whole_object(text: str) -> dict[str, Any] | None:
    """The decoded object of a reply that is only an object which names falsehood."""
    whole = _whole(text)
    return whole.value if whole else None


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for brace in _BRACE.finditer(text, start):
        if brace[0] == "{":
            depth += 1
        elif brace[0] == "}":
            depth -= 1
            if depth == 0:
                return brace.end()
    return None


def _restart(text: str, start: int, end: int) -> int | None:
    line = text[text.rfind("\n", 0, start) + 1 : start]
    indent = len(line) - len(line.lstrip(" \t"))
    for opening in _OBJECT_ON_NEW_LINE.finditer(text, start + 1, end):
        if len(opening["indent"]) <= indent:
            return opening.start("brace")
    return None


def _within_doubled_braces(text: str) -> str:
    return text.strip("{} \t\r\n") if _DOUBLED.match(text) else text


def _end_of_block(text: str, candidate: Candidate) -> int:
    """The last possible end of an object without one: the code fence around it, or the end of the reply."""
    if candidate.closed:
        return candidate.end
    fence = _FENCE.search(text, candidate.start)
    return fence.start() + 1 if fence else candidate.end
