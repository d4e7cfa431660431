"""The basis of every measure: scores by label, and numbers with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from firecircle.errors import ConfigError
from firecircle.names import Label
from firecircle.shapes import Shape, Text

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

CONFIDENCE = 0.95
"""The coverage of every interval of the lab by default."""


class Estimate(Shape):
    """A figure computed from `n` observations. `note` says why there is no value, or what weakens it."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    confidence: float = CONFIDENCE
    note: Text | None = None


def nothing(reason: str, n: int = 0) -> Estimate:
    """An estimate without a value, with the reason."""
    return Estimate(value=None, n=n, note=reason)


def wilson(hits: int, n: int, nobody: str = "nothing was observed") -> Estimate:
    """A share with its Wilson interval; `nobody` is the reason if there is nothing to count."""
    if n == 0:
        return nothing(nobody)
    # In closed form, so that shares need no scipy: `harden` works without the extra.
    share, z = hits / n, NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle, width = share + z * z / (2 * n), z * sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    low, high = (middle - width) / (1 + z * z / n), (middle + width) / (1 + z * z / n)
    # Rounding may put the bound of 0 or n hits slightly on the wrong side of the share itself.
    return Estimate(value=share, low=max(0.0, min(low, share)), high=min(1.0, max(high, share)), n=n)


def numbers(values: object) -> FloatArray:
    """Numbers as an array, None as NaN."""
    return np.asarray(values, dtype=np.float64)


def finite(value: float | np.floating) -> float | None:
    """A plain number, or None for NaN and infinities, which JSON lacks."""
    return float(value) if np.isfinite(value) else None


def mean(values: FloatArray) -> float:
    """The mean of a non-empty array as a plain number."""
    return cast(float, values.mean().item())


NO_ATTACKS = "there is no attack to find"
NO_BENIGN = "there is no benign prompt to raise a false alarm"


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of attacks and of benign prompts. High means alarm."""

    attack: FloatArray
    benign: FloatArray
    unlabelled: int = 0
    missing: int = 0
    """Labelled prompts without a score, which are in neither array."""

    @property
    def one_class(self) -> str | None:
        """Why measures that need both labels are unavailable, if so."""
        if not self.attack.size:
            return NO_ATTACKS
        return None if self.benign.size else NO_BENIGN


def scored(labels: Sequence[Label | None], scores: Sequence[float | None] | FloatArray) -> Scored:
    """Scores by label; prompts without a label or a score are counted and left out."""
    attack, benign = by_label(labels)
    values = numbers(scores)
    same_length(labels, values)
    heard = np.isfinite(values)
    return Scored(
        attack=values[attack & heard],
        benign=values[benign & heard],
        unlabelled=int((~attack & ~benign).sum()),
        missing=int(((attack | benign) & ~heard).sum()),
    )


def by_label(labels: Sequence[Label | None]) -> tuple[BoolArray, BoolArray]:
    """Which entries are attacks, and which are benign."""
    names = np.asarray(list(labels), dtype=object)
    return np.asarray(names == "attack", dtype=np.bool_), np.asarray(names == "benign", dtype=np.bool_)


def same_length(first: Sequence[object] | FloatArray, second: Sequence[object] | FloatArray) -> None:
    """Refuse two columns that cannot belong to the same records."""
    if len(first) != len(second):
        raise ConfigError(
            "statistics", f"{len(first)} entries beside {len(second)}", "give one of each for every record"
        )


MOST_RESAMPLES = 2_000
FEWEST_RESAMPLES = 400
ROWS_DRAWN = 1_000_000
"""Limits the resamples of large runs: their intervals are narrow, and the report should not take minutes."""
ROWS_DRAWN_TO_TEST = 20_000_000
"""A p-value cannot be smaller than the resamples allow, and must survive the correction for many."""
SEED = 20_001
"""Fixed: the same records give the same interval."""
NUMBERS_AT_ONCE = 2_000_000
FEWEST = 2
"""A resample of a single row is that row."""

RowNumbers = NDArray[np.int64]


def resample(
    statistic: Callable[..., FloatArray], sizes: tuple[int, ...], rows_drawn: int = ROWS_DRAWN
) -> tuple[float | None, float | None, FloatArray]:
    """Percentile interval and distribution of a statistic of row numbers, resampling each group by itself.

    `statistic` takes one array of row numbers per group and works along the last axis.
    """
    from scipy.stats import bootstrap

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
    """The mean over records without NaN. A mean of yes and no is a share, with its Wilson interval."""
    heard = values[np.isfinite(values)]
    if not heard.size:
        return nothing(nobody)
    if np.isin(heard, (0.0, 1.0)).all():
        return wilson(int(heard.sum()), heard.size)
    value = mean(heard)
    if heard.size < FEWEST:
        return Estimate(value=value, n=heard.size, note="one observation has no interval")
    low, high, _ = resample(lambda rows: numbers(heard[rows].mean(axis=-1)), (heard.size,))
    return Estimate(value=value, low=low, high=high, n=heard.size)


def share_over_records(hits: FloatArray, chances: FloatArray, nobody: str) -> Estimate:
    """Hits per chance, if one record may have several dependent chances.

    Whole records are resampled. At 0 or 1 all resamples are equal, so the Wilson interval over records is
    used.
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
    low, high, _ = resample(
        lambda rows: numbers(hits[rows].sum(axis=-1) / chances[rows].sum(axis=-1)), (chances.size,)
    )
    return Estimate(value=value, low=low, high=high, n=int(chances.size))
