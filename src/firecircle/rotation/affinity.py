"""Which voices complement each other, and how that changes a draw.

A pair complements each other if together it supports more patterns than either voice alone. Once some voices
are drawn, every other voice's weight is multiplied by a factor between `LEAST` and `MOST`. The factor
compares the voice with the other known partners of those drawn, so it shows who fits better, not who is
strong. A pair with few shared circles has factor 1. A voice that was never heard has `MOST`, so that no voice
outweighs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from firecircle.shapes import Shape, Text

if TYPE_CHECKING:
    from firecircle.circle.result import FireCircleResult, PatternObservation

DOUBT = 5
"""Assumed number of patterns on which a pair adds nothing, so that few circles prove little."""
LEAST, MOST = 0.5, 2.0
FEWEST_CIRCLES = 5
"""Circles with patterns that a pair must share before it counts as known."""

Factors = Mapping[tuple[str, str], float]
"""By drawn voice and candidate."""

Times = Annotated[int, Field(ge=0, le=10**12)]


class Affinity(Shape):
    """A pair of voices, and how much the pair adds to each alone."""

    first: Text
    second: Text
    circles: Times
    """Circles that found patterns and that both finished."""
    patterns: Times
    """Patterns that those circles agreed on."""
    backed_by_first: Times
    backed_by_second: Times
    backed_by_either: Times
    complement: float
    """The share of patterns that the pair supports beyond the better of the two, shrunk if they are few."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        fewer, more = sorted((self.backed_by_first, self.backed_by_second))
        if not more <= self.backed_by_either <= min(fewer + more, self.patterns):
            raise ValueError("backed_by_either does not go with what the two backed")
        return self


class _Quote(BaseModel):
    model_config = ConfigDict(frozen=True)

    quoted_by: str


class _Pattern(BaseModel):
    model_config = ConfigDict(frozen=True)

    evidence: tuple[_Quote, ...] = ()


class CircleGlance(BaseModel):
    """The part of a saved circle that its pairs need: parsing all of it takes about ten times as long."""

    model_config = ConfigDict(frozen=True)

    active_models: tuple[str, ...]
    patterns: tuple[_Pattern, ...]


def affinities(circles: Iterable[FireCircleResult | CircleGlance]) -> tuple[Affinity, ...]:
    """Every pair that ever shared a circle, best complements first."""
    tallies: dict[tuple[str, str], list[int]] = {}
    for circle in circles:
        if not circle.patterns:
            continue
        backed = {voice: _patterns_of(voice, circle.patterns) for voice in circle.active_models}
        for first, second in combinations(sorted(backed), 2):
            tally = tallies.setdefault((first, second), [0] * 5)
            new = (
                1,
                len(circle.patterns),
                len(backed[first]),
                len(backed[second]),
                len(backed[first] | backed[second]),
            )
            tallies[first, second] = [had + more for had, more in zip(tally, new, strict=True)]
    pairs = [_affinity(pair, tally) for pair, tally in tallies.items()]
    return tuple(sorted(pairs, key=lambda pair: (-pair.complement, pair.first, pair.second)))


def _patterns_of(voice: str, patterns: Iterable[PatternObservation | _Pattern]) -> frozenset[int]:
    return frozenset(
        place
        for place, pattern in enumerate(patterns)
        if any(quote.quoted_by == voice for quote in pattern.evidence)
    )


def _affinity(pair: tuple[str, str], tally: list[int]) -> Affinity:
    circles, patterns, first, second, either = tally
    return Affinity(
        first=pair[0],
        second=pair[1],
        circles=circles,
        patterns=patterns,
        backed_by_first=first,
        backed_by_second=second,
        backed_by_either=either,
        complement=(either - max(first, second)) / (patterns + DOUBT),
    )


def known_among(names: Iterable[str], learnt: Iterable[Affinity]) -> tuple[Affinity, ...]:
    """The known pairs among these voices, by name."""
    pool = set(names)
    known = [
        pair
        for pair in learnt
        if pair.circles >= FEWEST_CIRCLES and pair.first in pool and pair.second in pool
    ]
    return tuple(sorted(known, key=lambda pair: (pair.first, pair.second)))


def factors(known: Iterable[Affinity]) -> Factors:
    """For each voice, the factors of its known partners.

    A partner supported some share of the patterns that the voice missed; the factor is that share over the
    share of all its partners together. `DOUBT` patterns at the common share are assumed in advance.
    """
    beside: dict[str, dict[str, tuple[int, int]]] = {}
    for pair in known:
        for drawn, joining, backed in (
            (pair.first, pair.second, pair.backed_by_first),
            (pair.second, pair.first, pair.backed_by_second),
        ):
            seen_too, missed = pair.backed_by_either - backed, pair.patterns - backed
            beside.setdefault(drawn, {})[joining] = (seen_too, missed)
    by_pair: dict[tuple[str, str], float] = {}
    for drawn, partners in beside.items():
        common = _share(
            sum(seen for seen, _ in partners.values()), sum(all_ for _, all_ in partners.values())
        )
        for joining, (seen, missed) in partners.items():
            its = (seen + DOUBT * common) / (missed + DOUBT)
            by_pair[drawn, joining] = min(MOST, max(LEAST, its / common)) if common else 1.0
    return by_pair


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def pace(voice_id: str, *, never_heard: bool, drawn: Sequence[str], beside: Factors) -> float:
    """The factor of a voice's weight after these are drawn: the geometric mean of its factors."""
    if not beside or not drawn:
        return 1.0
    if never_heard:
        return MOST
    logs = [math.log(beside.get((other, voice_id), 1.0)) for other in drawn]
    return min(MOST, max(LEAST, math.exp(math.fsum(logs) / len(logs))))
