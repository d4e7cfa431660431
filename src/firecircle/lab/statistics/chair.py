"""Does the empty chair matter? Paired runs with and without it, and what it brought while it was held."""

from __future__ import annotations

from collections.abc import Sequence

from firecircle.lab.datasets.record import Label
from firecircle.lab.statistics.comparison import Comparison, compare
from firecircle.lab.statistics.estimate import Estimate, FloatArray, numbers
from firecircle.lab.statistics.resampling import mean_with_interval
from firecircle.shapes import Shape

PERFORMATIVE_BELOW = 0.05
"""Mean influence over a run under which the chair is a gesture."""


class ChairEffect(Shape):
    """The chair's worth over a run."""

    comparison: Comparison
    """With the chair first, without it second."""
    mean_influence: Estimate
    performative: bool | None
    """None when no circle held a chair."""


def chair_effect(
    labels: Sequence[Label | None],
    with_chair: Sequence[float | None] | FloatArray,
    without_chair: Sequence[float | None] | FloatArray,
    influences: Sequence[float | None] | FloatArray,
    threshold: float,
) -> ChairEffect:
    """`influences` has an entry for each circle, None for one in which nobody held the chair."""
    influence = mean_with_interval(numbers(influences), "no circle held a chair")
    return ChairEffect(
        comparison=compare(labels, with_chair, without_chair, threshold),
        mean_influence=influence,
        performative=None if influence.value is None else influence.value < PERFORMATIVE_BELOW,
    )
