"""What the maximum over more voices buys and costs: recall and false alarms by circle size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import hypergeom

from firecircle.lab.datasets.record import Label
from firecircle.lab.statistics.estimate import Estimate, FloatArray, numbers
from firecircle.lab.statistics.resampling import mean_with_interval
from firecircle.lab.statistics.scored import NO_ATTACKS, NO_BENIGN, by_label, same_length
from firecircle.shapes import Shape


class SizeRates(Shape):
    """The rates of the maximum over a circle of this size, drawn at random from the voices."""

    size: int
    recall: Estimate
    false_alarm_rate: Estimate


def rates_by_size(
    labels: Sequence[Label | None], scores: FloatArray, threshold: float
) -> tuple[SizeRates, ...]:
    """`scores` has a row a voice and a column a record, NaN where a voice was not heard.

    The chance that a random circle of k among the m voices heard holds none of the a that raise the alarm is
    hypergeometric, so the expectation over all subsets is exact. Records with fewer than k
    voices are left out.
    """
    same_length(labels, scores.T)
    attack, benign = by_label(labels)
    heard = np.isfinite(scores)
    present = heard.sum(axis=0)
    alarms = (heard & (np.where(heard, scores, -np.inf) >= threshold)).sum(axis=0)
    rows: list[SizeRates] = []
    for size in range(1, scores.shape[0] + 1):
        enough = present >= size
        chance = np.full(present.shape, np.nan)
        chance[enough] = 1 - hypergeom.pmf(0, present[enough], alarms[enough], size)
        # A tail below rounding is certainty, and certainty has the exact interval of a share.
        chance = numbers(np.where(np.isclose(chance, np.round(chance), atol=1e-12), np.round(chance), chance))
        rows.append(
            SizeRates(
                size=size,
                recall=mean_with_interval(chance[attack], NO_ATTACKS),
                false_alarm_rate=mean_with_interval(chance[benign], NO_BENIGN),
            )
        )
    return tuple(rows)
