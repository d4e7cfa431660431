"""Read a decoded object: which members are scores, verdict, reasons and patterns, under any name."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from firecircle.circle.reading.stated import Figure, Scores, figure, settle
from firecircle.evaluation import PatternNote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from firecircle.circle.reading.evidence import Evidence
    from firecircle.evaluation import PatternNote, Verdict


NAMES_KEPT = 1_000
"""Size of the cache of names: voices use the same dozen over and over."""
_NOT_A_LETTER = re.compile(r"[^a-z]")
_LONGEST_NAME = 60


def plain_name(key: str) -> str:
    """The letters of a name in lower case; empty for one too long to be a name."""
    return _letters(key) if len(key) <= _LONGEST_NAME else ""


@lru_cache(maxsize=NAMES_KEPT)
def _letters(key: str) -> str:
    return _NOT_A_LETTER.sub("", key.casefold())


_TYPE_KEYS = ("type", "patterntype", "pattern", "name", "patternname", "category", "label")
_DESCRIPTION_KEYS = ("description", "desc", "explanation", "details", "detail", "observation", "summary")
_QUOTE_KEYS = ("quote", "quotes", "evidence", "example", "examples", "excerpt", "excerpts")
_LAYER_KEYS = ("layer", "layers", "layername", "location")
_KNOWN_KEYS = frozenset(_TYPE_KEYS + _DESCRIPTION_KEYS + _QUOTE_KEYS + _LAYER_KEYS)

_NOTHING = re.compile(
    r"\W*(?:(?:none|n/?a|nil|null|nothing)(?:\s+(?:observed|found|detected|identified|noted|seen))?"
    r"|no(?:\s+\w+)?\s+patterns?(?:\s+\w+)?)?\W*",
    re.IGNORECASE,
)
_MOST_WORDS_OF_A_TYPE = 6
_MOST_NOTES = 500


def pattern_notes(value: Any) -> tuple[PatternNote, ...]:
    """The notes in a list, a single object, a mapping of type to description, or a text."""
    return tuple(islice(_notes(value), _MOST_NOTES))


def as_text(value: Any, between: str = ", ") -> str:
    """A member as text: lists are joined, numbers formatted, anything else is empty."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return between.join(filter(None, (as_text(each) for each in value if not isinstance(each, list))))
    if isinstance(value, dict):
        parts = (
            (str(key), as_text(each)) for key, each in value.items() if not isinstance(each, dict | list)
        )
        return between.join(f"{key}: {text}" for key, text in parts if text)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ""


def _notes(value: Any, type_: str | None = None) -> Iterator[PatternNote]:
    if not value:  # as many are
        return
    if isinstance(value, list):
        for item in value:
            if not isinstance(item, list):
                yield from _notes(item, type_)
    elif isinstance(value, str):
        if not _is_nothing(value):
            yield PatternNote(description=value.strip(), type=type_)
    elif isinstance(value, dict):
        members = {plain_name(str(key)): member for key, member in value.items()}
        if members.keys() & _KNOWN_KEYS:
            yield from _one_per_quote(members, type_)
        elif type_ is None:
            for key, member in value.items():
                yield from _notes(member, str(key))
    elif value and type_:
        yield PatternNote(description=type_, type=type_)


def _one_per_quote(members: dict[str, Any], type_: str | None) -> Iterator[PatternNote]:
    named = _first(members, _TYPE_KEYS)
    description = _first(members, _DESCRIPTION_KEYS)
    if len(named.split()) > _MOST_WORDS_OF_A_TYPE:
        named, description = "", description or named
    quotes = _quotes(members)
    description = description or named or (type_ or "") or (quotes[0] if quotes else "")
    if _is_nothing(description):
        return
    for quote in quotes or [""]:
        yield PatternNote(
            description=description,
            type=named or type_,
            quote=quote or None,
            layer=_first(members, _LAYER_KEYS) or None,
        )


def _quotes(members: dict[str, Any]) -> list[str]:
    for key in _QUOTE_KEYS:
        value = members.get(key)
        texts = [as_text(each) for each in value] if isinstance(value, list) else [as_text(value)]
        kept = [text for text in texts if text]
        if kept:
            return kept
    return []


def _first(members: dict[str, Any], keys: tuple[str, ...], between: str = ", ") -> str:
    for key in keys:
        if (member := members.get(key)) is not None and (text := as_text(member, between)):
            return text
    return ""


def _is_nothing(text: str) -> bool:
    return len(text) <= 200 and bool(_NOTHING.fullmatch(text))


Dimension = Literal["truth", "indeterminacy", "falsehood"]

_NAMES: Final[dict[str, Dimension]] = {
    "truth": "truth",
    "trutht": "truth",
    "ttruth": "truth",
    "indeterminacy": "indeterminacy",
    "indeterminacyi": "indeterminacy",
    "iindeterminacy": "indeterminacy",
    "falsehood": "falsehood",
    "falsehoodf": "falsehood",
    "ffalsehood": "falsehood",
    "falsity": "falsehood",
    "falseness": "falsehood",
}
_LETTERS: Final[dict[str, Dimension]] = {"t": "truth", "i": "indeterminacy", "f": "falsehood"}
_DECORATION = re.compile(r"(?:score|value|level|degree|rating)$")
_MOST_INSIDE = 20

_VERDICTS: Final[dict[str, Verdict]] = {
    "violation": "violation",
    "aviolation": "violation",
    "noviolation": "no_violation",
    "nonviolation": "no_violation",
    "notaviolation": "no_violation",
    "noviolations": "no_violation",
    "unsure": "unsure",
}
_VERDICT_IN_WORDS = re.compile(
    r"\bverdict\b[\s\"'*_`:=|–—-]{1,12}(no[\s_-]*violation|violation|unsure)\b(?![\"'`*\s]*[|/])",
    re.IGNORECASE,
)

REASONING_KEYS = ("reasoning", "reason", "rationale", "explanation", "justification", "analysis")


class VerdictObject(NamedTuple):
    """A parsed object that states falsehood."""

    scores: Scores
    verdict: Verdict | None
    reasoning: str
    patterns_observed: tuple[PatternNote, ...]
    consensus_patterns: tuple[PatternNote, ...]
    speaks_for: str | None
    veto: str | None


def verdict_object(
    value: dict[str, Any], declared: Callable[[], int | None], evidence: Evidence
) -> VerdictObject | None:
    """Parse the object, or None if neither it nor an object directly inside it states falsehood.

    `declared` returns the scale named around the object, which applies to its numbers.
    """
    if (plain := plain_verdict(value, declared)) is not None:
        return plain
    for inner in islice(_objects_inside(value), _MOST_INSIDE - 1):
        scores = _scores(inner, declared)
        if scores is not None and not evidence.holds(json.dumps(inner, ensure_ascii=False)):
            return _to_verdict_object(scores, {**value, **inner})
    return None


def plain_verdict(value: dict[str, Any], declared: Callable[[], int | None]) -> VerdictObject | None:
    """Parse the object itself, or None if it does not state falsehood."""
    scores = _scores(value, declared)
    return None if scores is None else _to_verdict_object(scores, value)


def _to_verdict_object(scores: Scores, value: dict[str, Any]) -> VerdictObject:
    members = {plain_name(key): member for key, member in value.items() if member is not None}
    return VerdictObject(
        scores=scores,
        verdict=_verdict(members.get("verdict")),
        reasoning=_first(members, REASONING_KEYS, "\n"),
        patterns_observed=pattern_notes(members.get("patternsobserved") or members.get("patterns")),
        consensus_patterns=pattern_notes(members.get("consensuspatterns")),
        speaks_for=as_text(members.get("speaksfor") or members.get("speakingfor")) or None,
        veto=as_text(members.get("veto")) or None,
    )


def verdict_in_words(text: str) -> Verdict | None:
    """The verdict a text states last, as in `**Verdict:** no violation`."""
    stated = _VERDICT_IN_WORDS.findall(text)
    return _verdict(stated[-1]) if stated else None


def _objects_inside(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for member in reversed(value.values()):
        if isinstance(member, list) and len(member) == 1:
            member = member[0]
        if isinstance(member, dict):
            yield member


def _scores(value: dict[str, Any], declared: Callable[[], int | None]) -> Scores | None:
    lettered: dict[Dimension, Figure] = {}
    named: dict[Dimension, Figure] = {}
    for key, member in value.items():
        if len(key) > _LONGEST_NAME:
            continue
        dimension, is_named = _dimension(key)
        if dimension and (figure := _figure_of(member)):
            (named if is_named else lettered)[dimension] = figure
    figures = lettered | named
    return settle(figures.get("truth"), figures.get("indeterminacy"), figures.get("falsehood"), declared)


@lru_cache(maxsize=NAMES_KEPT)
def _dimension(key: str) -> tuple[Dimension | None, bool]:
    """Which score a member is, and whether its name is a whole word."""
    name = _DECORATION.sub("", plain_name(key))
    return _NAMES.get(name) or _LETTERS.get(name), name in _NAMES


def _figure_of(member: Any) -> Figure | None:
    if isinstance(member, dict):
        inside = [figure(each) for key, each in member.items() if plain_name(key) in ("score", "value")]
        return inside[0] if len(inside) == 1 else None
    return figure(member)


def _verdict(value: Any) -> Verdict | None:
    return _VERDICTS.get(plain_name(value)) if isinstance(value, str) else None
