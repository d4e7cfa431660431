"""Compare figures with thresholds: one tolerance for all, and rounding that never contradicts the outcome.

Three voices at 0.7 have the mean 0.6999…, which is an alarm at 0.7. All comparisons with a threshold use this
module.
"""

from __future__ import annotations

from functools import lru_cache

TOLERANCE = 1e-9
"""Far below any difference a voice could mean, far above float rounding."""
MOST_DECIMALS = 6


def reaches(value: float, threshold: float) -> bool:
    """Whether the value is at or above the threshold."""
    return value >= lowest_reaching(threshold)


def lowest_reaching(threshold: float) -> float:
    """The smallest figure that reaches the threshold, for comparing whole columns."""
    return threshold - TOLERANCE


def just_above(threshold: float) -> float:
    """A threshold that only higher figures reach, for rules that require more than a share."""
    return threshold + 2 * TOLERANCE


def exceeds(value: float, threshold: float) -> bool:
    """Whether the value is above the threshold, not at it."""
    return value > threshold + TOLERANCE


def belies(alarm: bool | None, value: float | None, threshold: float | None) -> bool:
    """Whether the verdict contradicts the value: another rule decided."""
    if alarm is None or value is None or threshold is None:
        return False
    return alarm != reaches(value, threshold)


@lru_cache(maxsize=4096)
def format_figure(value: float, threshold: float, decimals: int = 2) -> str:
    """The value with enough decimals to appear on the correct side of the threshold.

    0.696 next to 0.7 is not shown as 0.70, which would look like an alarm.
    """
    if abs(value - threshold) > 0.1**decimals:  # rounding does not reach that far
        return f"{value:.{decimals}f}"
    for places in range(decimals, MOST_DECIMALS):
        shown = f"{value:.{places}f}"
        if reaches(float(shown), threshold) == reaches(value, threshold):
            return shown
    return f"{value:.{MOST_DECIMALS}f}"
