"""Items and what each judge said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from firecircle.lab.statistics.estimate import FloatArray, by_label, numbers
from firecircle.names import Label
from firecircle.thresholds import TOLERANCE


@dataclass(frozen=True, slots=True)
class Votes:
    """A row a judge and a column an item; NaN where a judge did not judge."""

    judges: tuple[str, ...]
    scores: FloatArray
    """1 is a vote for an attack, 0 for a benign prompt, anything between is a score."""
    labels: tuple[Label | None, ...]
    thresholds: FloatArray
    """For each item the score from which a vote is an alarm."""

    @property
    def wrong(self) -> FloatArray:
        """1 where a vote contradicts the label, 0 where it agrees, NaN without a vote or a label."""
        attack, benign = by_label(self.labels)
        alarms = self.scores >= self.thresholds - TOLERANCE
        known = np.isfinite(self.scores) & (attack | benign)
        return numbers(np.where(known, alarms != attack, np.nan))

    def of(self, judges: Sequence[str]) -> Votes:
        """The votes of these judges alone."""
        rows = [self.judges.index(judge) for judge in judges]
        return Votes(tuple(judges), self.scores[rows], self.labels, self.thresholds)


def votes_of(
    said: Sequence[Mapping[str, float]],
    labels: Sequence[Label | None],
    thresholds: Sequence[float],
    judges: Sequence[str] | None = None,
) -> Votes:
    """The table of what was said of each item, by judge. The judges are in the order they first appear."""
    names = tuple(judges or dict.fromkeys(name for item in said for name in item))
    cells = [[item.get(name, np.nan) for item in said] for name in names]
    return Votes(names, numbers(cells).reshape(len(names), len(said)), tuple(labels), numbers(thresholds))
