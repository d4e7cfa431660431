"""How many patterns a circle finds, and how many of them it can show in the prompt's own words."""

from __future__ import annotations

from collections.abc import Sequence

from firecircle.lab.statistics.estimate import Estimate, numbers
from firecircle.lab.statistics.resampling import mean_with_interval, share_over_records
from firecircle.lab.statistics.scored import same_length
from firecircle.shapes import Shape


class PatternFigures(Shape):
    """Patterns over the circles of a run."""

    per_circle: Estimate
    """Grounded and ungrounded together."""
    grounded_per_circle: Estimate
    share_grounded: Estimate


def pattern_figures(grounded: Sequence[int], ungrounded: Sequence[int]) -> PatternFigures:
    """An entry a circle: the patterns it could ground, and those it could not."""
    same_length(grounded, ungrounded)
    shown, unshown = numbers(grounded), numbers(ungrounded)
    return PatternFigures(
        per_circle=mean_with_interval(shown + unshown, "no circle was held"),
        grounded_per_circle=mean_with_interval(shown, "no circle was held"),
        share_grounded=share_over_records(shown, shown + unshown, "no circle found a pattern"),
    )
