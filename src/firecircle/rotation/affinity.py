"""Which voices complement each other: pairs that together back more patterns than either does alone."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from firecircle.circle.result import FireCircleResult, PatternObservation
from firecircle.shapes import Shape, Text

DOUBT = 5
"""So many patterns on which a pair adds nothing are assumed beforehand, so that few circles prove little."""

Times = Annotated[int, Field(ge=0, le=10**12)]


class Affinity(Shape):
    """A pair that sat together, and what sitting together was worth."""

    first: Text
    second: Text
    circles: Times
    """In which both sat to the end and patterns were found."""
    patterns: Times
    """That those circles agreed on."""
    backed_by_first: Times
    backed_by_second: Times
    backed_by_either: Times
    complement: float
    """The share of patterns that the pair backs beyond the better of the two, shrunk where they are few."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        one, other = sorted((self.backed_by_first, self.backed_by_second))
        if not other <= self.backed_by_either <= min(one + other, self.patterns):
            raise ValueError("backed_by_either does not go with what the two backed")
        return self


class _Quote(BaseModel):
    model_config = ConfigDict(frozen=True)

    quoted_by: str


class _Pattern(BaseModel):
    model_config = ConfigDict(frozen=True)

    evidence: tuple[_Quote, ...] = ()


class CircleGlance(BaseModel):
    """As much of a kept circle as its pairs take: understanding all of it takes about ten times as long."""

    model_config = ConfigDict(frozen=True)

    active_models: tuple[str, ...]
    patterns: tuple[_Pattern, ...]


def affinities(circles: Iterable[FireCircleResult | CircleGlance]) -> tuple[Affinity, ...]:
    """Every pair that ever sat together, those that complement each other best first."""
    tallies: dict[tuple[str, str], list[int]] = {}
    for circle in circles:
        if not circle.patterns:
            continue
        backed = {voice: _backed_by(voice, circle.patterns) for voice in circle.active_models}
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


def _backed_by(voice: str, patterns: Iterable[PatternObservation | _Pattern]) -> frozenset[int]:
    return frozenset(
        place
        for place, found in enumerate(patterns)
        if any(quote.quoted_by == voice for quote in found.evidence)
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
