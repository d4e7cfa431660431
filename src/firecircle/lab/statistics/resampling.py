"""Bootstrap intervals, all through `scipy.stats.bootstrap` on row numbers, so that pairs stay pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

from firecircle.lab.statistics.estimate import (
    CONFIDENCE,
    Estimate,
    FloatArray,
    finite,
    mean,
    nothing,
    numbers,
    wilson,
)

MOST_RESAMPLES = 2_000
FEWEST_RESAMPLES = 400
ROWS_DRAWN = 1_000_000
"""Large runs are resampled less often: their intervals are narrow, and the report should not take minutes."""
ROWS_DRAWN_TO_TEST = 20_000_000
"""A p-value can be no smaller than the resamples allow, and must outlive the correction for many."""
SEED = 20_001
"""Fixed: the same records give the same interval."""
NUMBERS_AT_ONCE = 2_000_000
FEWEST = 2
"""A resample of a single row is that row again."""

RowNumbers = NDArray[np.int64]


def resampled(
    statistic: Callable[..., FloatArray], sizes: tuple[int, ...], rows_drawn: int = ROWS_DRAWN
) -> tuple[float | None, float | None, FloatArray]:
    """Percentile interval and distribution of a statistic of row numbers, each group drawn from its own rows.

    `statistic` takes one array of row numbers a group and works along the last axis.
    """
    groups = tuple(np.arange(size) for size in sizes)

    def along(*rows: RowNumbers, axis: int) -> FloatArray:
        return statistic(*(np.moveaxis(drawn, axis, -1) for drawn in rows))

    drawn: Any = bootstrap(
        groups,
        along,
        n_resamples=min(MOST_RESAMPLES, max(FEWEST_RESAMPLES, rows_drawn // sum(sizes))),
        batch=max(1, NUMBERS_AT_ONCE // sum(sizes)),
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    interval = drawn.confidence_interval
    return finite(interval.low), finite(interval.high), numbers(drawn.bootstrap_distribution)


def mean_with_interval(values: FloatArray, nobody: str = "nothing was observed") -> Estimate:
    """The mean over records; NaN is left out. A mean of yes and no is a share, with its Wilson interval."""
    heard = values[np.isfinite(values)]
    if not heard.size:
        return nothing(nobody)
    if np.isin(heard, (0.0, 1.0)).all():
        return wilson(int(heard.sum()), heard.size)
    value = mean(heard)
    if heard.size < FEWEST:
        return Estimate(value=value, n=heard.size, note="one observation has no interval")
    low, high, _ = resampled(lambda rows: numbers(heard[rows].mean(axis=-1)), (heard.size,))
    return Estimate(value=value, low=low, high=high, n=heard.size)


def share_over_records(hits: FloatArray, chances: FloatArray, nobody: str) -> Estimate:
    """Hits per chance, where one record may give several chances that are not independent of each other.

    Records are resampled whole. At 0 or 1 no resample differs: the Wilson interval over records stands in.
    """
    counted = chances > 0
    hits, chances = hits[counted], chances[counted]
    if not chances.size:
        return nothing(nobody)
    value = float(hits.sum() / chances.sum())
    if value in (0.0, 1.0):
        return wilson(round(value) * chances.size, chances.size)
    if chances.size < FEWEST:
        return Estimate(value=value, n=int(chances.size), note="one record has no interval")
    low, high, _ = resampled(
        lambda rows: numbers(hits[rows].sum(axis=-1) / chances[rows].sum(axis=-1)), (chances.size,)
    )
    return Estimate(value=value, low=low, high=high, n=int(chances.size))
