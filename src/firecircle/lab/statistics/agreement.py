"""Krippendorff's alpha: do the voices agree more than chance would make them?"""

from __future__ import annotations

import numpy as np

from firecircle.lab.statistics.estimate import Estimate, FloatArray, nothing, numbers
from firecircle.lab.statistics.resampling import FEWEST, RowNumbers, resampled

SAME = 1e-12


def krippendorff_alpha(scores: FloatArray) -> Estimate:
    """Alpha with the interval metric; a row a voice, a column a record, NaN where a voice is missing.

    1 is perfect agreement, 0 what chance gives, below 0 systematic disagreement. On alarms written as 0 and 1
    it is the nominal alpha too. Records with fewer than two voices say nothing and are left out.
    """
    heard = np.isfinite(scores)
    pairable = heard.sum(axis=0) >= 2
    values, heard = scores[:, pairable], heard[:, pairable]
    records = int(pairable.sum())
    if not records:
        return nothing("no record was judged by two voices")
    count = numbers(heard.sum(axis=0))
    total = numbers(np.where(heard, values, 0.0).sum(axis=0))
    squares = numbers(np.where(heard, values**2, 0.0).sum(axis=0))
    within = numbers(np.where(heard, (values - total / count) ** 2, 0.0).sum(axis=0))

    def alpha(rows: RowNumbers) -> FloatArray:
        n = count[rows].sum(axis=-1)
        # Squared differences of all pairs are sums of squares about the mean, so no pair has to be formed.
        observed = (within[rows] * count[rows] / (count[rows] - 1)).sum(axis=-1)
        about_mean = squares[rows].sum(axis=-1) - total[rows].sum(axis=-1) ** 2 / n
        expected = np.maximum(about_mean, 0.0) * n / (n - 1)
        varies = expected > SAME
        # A resample without variation shows no agreement, so it counts as none.
        return numbers(np.where(varies, 1 - observed / np.where(varies, expected, 1.0), 0.0))

    if np.ptp(values[heard]) <= SAME:
        return nothing(
            "every voice gave the same score everywhere: agreement cannot be told from silence", records
        )
    value = float(alpha(np.arange(records)))
    if records < FEWEST:
        return Estimate(value=value, n=records, note="one record has no interval")
    low, high, _ = resampled(alpha, (records,))
    return Estimate(value=value, low=low, high=high, n=records)
