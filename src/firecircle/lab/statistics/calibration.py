"""Find the alarm threshold that keeps false alarms rare on the user's benign prompts, with its certainty."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log
from typing import Any

import numpy as np

from firecircle.errors import ConfigError
from firecircle.lab.statistics.estimate import (
    CONFIDENCE,
    NO_BENIGN,
    Estimate,
    FloatArray,
    finite,
    numbers,
    wilson,
)
from firecircle.shapes import Shape, Text

STEP = 1e-4
"""Thresholds are rounded up to this if that changes no verdict, so that they are short."""


class Threshold(Shape):
    """A threshold and its false alarms on the benign prompts it was fitted on."""

    value: float | None
    """None if no threshold on the scale achieves the rate."""
    false_alarms: int
    note: Text | None = None


class Calibration(Shape):
    """Thresholds for a target false alarm rate, from benign prompts alone."""

    target: float
    benign: int
    missing: int
    observed: Threshold
    """The lowest threshold that achieves the rate on these prompts."""
    observed_rate: Estimate
    quantile: Estimate
    """The score that the target share of benign prompts exceeds, with its order-statistic interval."""
    guaranteed: Threshold
    """The lowest threshold that achieves the rate on future prompts with the stated confidence."""
    confidence: float


def calibrate(
    benign: Sequence[float | None] | FloatArray, target: float, confidence: float = CONFIDENCE
) -> Calibration:
    """Fit thresholds so that at most the target share of benign prompts raises an alarm (F at or above it).

    The guarantee allows k false alarms among n prompts only if, at the target rate, the chance of k or fewer
    is at most 1 - confidence (the exact binomial bound): it assumes nothing about the scores.
    """
    if not 0 < target < 1 or not 0 < confidence < 1:
        raise ConfigError("calibrate", "target and confidence are shares", "give numbers between 0 and 1")
    values = numbers(benign)
    missing = int((~np.isfinite(values)).sum())
    scores = np.sort(values[np.isfinite(values)])[::-1]
    n = scores.size
    observed = _threshold(scores, int(np.floor(target * n + 1e-9)))
    return Calibration(
        target=target,
        benign=n,
        missing=missing,
        observed=observed,
        observed_rate=wilson(observed.false_alarms, n, NO_BENIGN),
        quantile=_quantile(scores, target, confidence),
        guaranteed=_guaranteed_threshold(scores, target, confidence),
        confidence=confidence,
    )


def _guaranteed_threshold(scores: FloatArray, target: float, confidence: float) -> Threshold:
    from scipy.stats import binom

    needed = ceil(log(1 - confidence) / log(1 - target))
    if scores.size < needed:
        return Threshold(
            value=None,
            false_alarms=0,
            note=f"{scores.size} benign prompts cannot promise a rate of {target:g}; it takes {needed:,}",
        )
    counts = np.arange(scores.size + 1)
    allowed = int(np.flatnonzero(binom.cdf(counts, scores.size, target) <= 1 - confidence)[-1])
    return _threshold(scores, allowed)


def _threshold(scores: FloatArray, allowed: int) -> Threshold:
    """The lowest threshold above all but the allowed number of scores, which are in descending order."""
    if not scores.size:
        return Threshold(value=None, false_alarms=0, note=NO_BENIGN)
    if allowed >= scores.size:
        return Threshold(value=0.0, false_alarms=scores.size)
    kept_out = float(scores[allowed])
    if kept_out >= 1.0:
        return Threshold(
            value=None,
            false_alarms=0,
            note=f"{int((scores >= 1.0).sum())} benign prompts reach 1: no threshold can pass them",
        )
    above = scores[scores > kept_out]
    next_above = float(above[-1]) if above.size else 1.0
    rounded = round((np.floor(kept_out / STEP) + 1) * STEP, 4)
    value = rounded if kept_out < rounded <= next_above else next_above
    return Threshold(value=value, false_alarms=int((scores >= value).sum()))


def _quantile(scores: FloatArray, target: float, confidence: float) -> Estimate:
    from scipy.stats import quantile_test

    if not scores.size:
        return Estimate(value=None, confidence=confidence, note=NO_BENIGN)
    # The stubs declare the interval as a number.
    interval: Any = quantile_test(scores, p=1 - target).confidence_interval(confidence)
    low, high = finite(interval.low), finite(interval.high)
    return Estimate(
        value=float(np.quantile(scores, 1 - target, method="inverted_cdf")),
        low=low,
        high=high,
        n=scores.size,
        confidence=confidence,
        note="too few benign prompts to bound it on both sides" if low is None or high is None else None,
    )
