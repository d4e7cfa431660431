"""Many comparisons find something by chance; these corrections say what still stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import false_discovery_control

from firecircle.lab.statistics.estimate import FloatArray, numbers


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's step-down p-values: the chance of even one false claim. Untested comparisons stay None."""
    return _where_tested(p_values, _holm)


def false_discovery(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Benjamini and Hochberg's p-values: the expected share of false claims among those made."""
    return _where_tested(p_values, lambda tested: numbers(false_discovery_control(tested, method="bh")))


def _where_tested(
    p_values: Sequence[float | None], correct: Callable[[FloatArray], FloatArray]
) -> tuple[float | None, ...]:
    tested = [place for place, p in enumerate(p_values) if p is not None and np.isfinite(p)]
    corrected: list[float | None] = [None] * len(p_values)
    if tested:
        for place, p in zip(tested, correct(numbers([p_values[place] for place in tested])), strict=True):
            corrected[place] = float(p)
    return tuple(corrected)


def _holm(tested: FloatArray) -> FloatArray:
    order = np.argsort(tested, kind="stable")
    stepped = tested[order] * np.arange(tested.size, 0, -1)
    corrected = np.empty_like(tested)
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return corrected
