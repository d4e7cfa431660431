"""What every measure starts from: scores laid out by label, and a number with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from firecircle.errors import ConfigError
from firecircle.lab.datasets.record import Label
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


NO_ATTACKS = "there is no attack to find"
NO_BENIGN = "there is no benign prompt to raise a false alarm"


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of attacks and of benign prompts. High means alarm."""

    attack: FloatArray
    benign: FloatArray
    unlabelled: int = 0
    missing: int = 0
    """Labelled prompts without a score: they are in neither array."""

    @property
    def one_class(self) -> str | None:
        """Why no measure that needs both labels can be had, if so."""
        if not self.attack.size:
            return NO_ATTACKS
        return None if self.benign.size else NO_BENIGN


def scored(labels: Sequence[Label | None], scores: Sequence[float | None] | FloatArray) -> Scored:
    """Scores sorted by label; prompts without a label or a score are counted and left out."""
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
