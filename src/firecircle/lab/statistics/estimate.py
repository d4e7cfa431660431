"""A number with its interval, or the reason why there is none."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from firecircle.shapes import Shape, Text

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

CONFIDENCE = 0.95
"""Every interval of the lab covers this much, unless it says otherwise."""


class Estimate(Shape):
    """A figure computed from `n` observations. `note` says why there is no value, or what weakens it."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    confidence: float = CONFIDENCE
    note: Text | None = None


def nothing(reason: str, n: int = 0) -> Estimate:
    """No figure, and why."""
    return Estimate(value=None, n=n, note=reason)


def wilson(hits: int, n: int, nobody: str = "nothing was observed") -> Estimate:
    """A share with its Wilson interval; `nobody` is the reason given when there is nothing to share."""
    from scipy.stats import binomtest

    if n == 0:
        return nothing(nobody)
    interval = binomtest(hits, n).proportion_ci(CONFIDENCE, method="wilson")
    # Rounding may put the bound of 0 or n hits a hair on the wrong side of the share itself.
    share = hits / n
    low, high = float(min(interval.low, share)), float(max(interval.high, share))
    return Estimate(value=share, low=max(0.0, low), high=min(1.0, high), n=n)


def numbers(values: object) -> FloatArray:
    """Numbers as an array, None as NaN."""
    return np.asarray(values, dtype=np.float64)


def finite(value: float | np.floating) -> float | None:
    """A plain number, or None for NaN and the infinities, which JSON cannot carry."""
    return float(value) if np.isfinite(value) else None


def mean(values: FloatArray) -> float:
    """The mean of a non-empty array as a plain number."""
    return cast(float, values.mean().item())
