"""What happened to reasons during the discussion, computed from a circle's record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from firecircle.circle.result import DialogueRound
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.shapes import Shape, Text, Unit


class Figures(Shape):
    """Truth, indeterminacy and falsehood, without a voice."""

    truth: Unit
    indeterminacy: Unit
    falsehood: Unit

    @classmethod
    def of(cls, evaluations: Sequence[NeutrosophicEvaluation]) -> Figures:
        """The mean of evaluations."""
        return cls(
            truth=fmean(each.truth for each in evaluations),
            indeterminacy=fmean(each.indeterminacy for each in evaluations),
            falsehood=fmean(each.falsehood for each in evaluations),
        )

    def distance(self, other: Figures) -> float:
        """The Euclidean distance, as a share of the largest there can be."""
        return math.dist(
            (self.truth, self.indeterminacy, self.falsehood),
            (other.truth, other.indeterminacy, other.falsehood),
        ) / math.sqrt(3)


class TwoReadings(Shape):
    """A prompt as the present voices and as the empty chair judge it, in the last round that has both."""

    round_number: int
    chair_model: Text
    present: Figures
    """The mean of the voices that spoke for themselves in that round."""
    chair: Figures
    gap: float
    """The distance between the two, from 0 to 1."""
    apart_before: float | None = None
    """How far the same voice was from the same others in round 1, without a chair."""


def two_readings(rounds: Sequence[DialogueRound]) -> TwoReadings | None:
    """The two readings of a circle; None if no voice was in the chair next to another voice."""
    for held in reversed(rounds):
        chair = held.occupied_chair
        others = [each for each in held.evaluations if each.model != chair]
        if chair is None or not others:
            continue
        own = Figures.of([each for each in held.evaluations if each.model == chair])
        present = Figures.of(others)
        first = {each.model: each for each in rounds[0].evaluations}
        before = None
        if chair in first and all(each.model in first for each in others):
            alone = Figures.of([first[each.model] for each in others])
            before = Figures.of([first[chair]]).distance(alone)
        return TwoReadings(
            round_number=held.round_number,
            chair_model=chair,
            present=present,
            chair=own,
            gap=present.distance(own),
            apart_before=before,
        )
    return None
