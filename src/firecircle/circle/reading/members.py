"""What a decoded object says: which of its members are the scores, the verdict, the reasons, the patterns."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from firecircle.circle.reading.notes import NAMES_KEPT, as_text, pattern_notes, plain_name
from firecircle.circle.reading.numbers import Figure, Scores, figure, settled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from firecircle.circle.reading.evidence import Evidence
    from firecircle.evaluation import PatternNote, Verdict

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
    """An object that states falsehood, read."""

    scores: Scores
    verdict: Verdict | None
    reasoning: str
    patterns_observed: tuple[PatternNote, ...]
    consensus_patterns: tuple[PatternNote, ...]
    speaks_for: str | None


def verdict_object(
    value: dict[str, Any], declared: Callable[[], int | None], evidence: Evidence
) -> VerdictObject | None:
    """What the object says, or None if neither it nor an object directly inside it states falsehood.

    `declared` tells the scale named around the object, which applies to its numbers.
    """
    for inner in islice(_itself_and_inside(value), _MOST_INSIDE):
        scores = _scores(inner, declared)
        if scores is None or (inner is not value and _from_evidence(inner, evidence)):
            continue
        members = _by_plain_name({**value, **inner} if inner is not value else value)
        return VerdictObject(
            scores=scores,
            verdict=_verdict(members.get("verdict")),
            reasoning=next(filter(None, (as_text(members.get(key), "\n") for key in REASONING_KEYS)), ""),
            patterns_observed=pattern_notes(members.get("patternsobserved") or members.get("patterns")),
            consensus_patterns=pattern_notes(members.get("consensuspatterns")),
            speaks_for=as_text(members.get("speaksfor") or members.get("speakingfor")) or None,
        )
    return None


def verdict_in_words(text: str) -> Verdict | None:
    """The verdict a text states last, as in `**Verdict:** no violation`."""
    stated = _VERDICT_IN_WORDS.findall(text)
    return _verdict(stated[-1]) if stated else None


def _itself_and_inside(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield value
    for member in reversed(value.values()):
        if isinstance(member, list) and len(member) == 1:
            member = member[0]
        if isinstance(member, dict):
            yield member


def _from_evidence(inner: dict[str, Any], evidence: Evidence) -> bool:
    return evidence.holds(json.dumps(inner, ensure_ascii=False))


def _scores(value: dict[str, Any], declared: Callable[[], int | None]) -> Scores | None:
    lettered: dict[Dimension, Figure] = {}
    named: dict[Dimension, Figure] = {}
    for key, member in value.items():
        dimension, is_named = _dimension(plain_name(key))
        figure = _figure_of(member) if dimension else None
        if dimension and figure:
            (named if is_named else lettered)[dimension] = figure
    figures = lettered | named
    return settled(figures.get("truth"), figures.get("indeterminacy"), figures.get("falsehood"), declared)


@lru_cache(maxsize=NAMES_KEPT)
def _dimension(plain: str) -> tuple[Dimension | None, bool]:
    """Which score a name is for, and whether it is a whole word."""
    name = _DECORATION.sub("", plain)
    return _NAMES.get(name) or _LETTERS.get(name), name in _NAMES


def _figure_of(member: Any) -> Figure | None:
    if isinstance(member, dict):
        inside = [figure(each) for key, each in member.items() if plain_name(key) in ("score", "value")]
        return inside[0] if len(inside) == 1 else None
    return figure(member)


def _verdict(value: Any) -> Verdict | None:
    return _VERDICTS.get(plain_name(value)) if isinstance(value, str) else None


def _by_plain_name(value: dict[str, Any]) -> dict[str, Any]:
    return {plain_name(key): member for key, member in value.items() if member is not None}
