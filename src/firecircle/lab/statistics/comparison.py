"""Compare two arms on the same records: which is better, and may chance explain it after many comparisons?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, fsum, lgamma, log

import numpy as np

from firecircle.lab.statistics.estimate import (
    FEWEST,
    NO_ATTACKS,
    NO_BENIGN,
    ROWS_DRAWN,
    ROWS_DRAWN_TO_TEST,
    BoolArray,
    Estimate,
    FloatArray,
    RowNumbers,
    by_label,
    nothing,
    numbers,
    resample,
    same_length,
)
from firecircle.lab.statistics.performance import area, area_of_places, places_of, recall_within
from firecircle.names import Label
from firecircle.shapes import Shape, Text
from firecircle.thresholds import lowest_reaching


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's step-down p-values: the chance of even one false claim. Untested comparisons stay None."""
    tested = [place for place, p in enumerate(p_values) if p is not None and np.isfinite(p)]
    corrected: list[float | None] = [None] * len(p_values)
    values = numbers([p_values[place] for place in tested])
    highest = 0.0
    for rank, at in enumerate(np.argsort(values, kind="stable")):
        highest = max(highest, float(values[at]) * (len(tested) - rank))
        corrected[tested[at]] = min(highest, 1.0)
    return tuple(corrected)


Statistic = Callable[[FloatArray, FloatArray], FloatArray]
"""Of the scores of attacks and of benign prompts."""
Resampler = Callable[[RowNumbers, RowNumbers], FloatArray]
"""The same of drawn rows."""


class McNemar(Shape):
    """Records on which exactly one of two arms is right, and the exact chance of a split this uneven."""

    both: int
    only_first: int
    only_second: int
    neither: int
    p_value: float | None
    note: Text | None = None


class Difference(Shape):
    """A figure of the first arm minus that of the second, resampling their shared records."""

    first: float | None
    second: float | None
    difference: Estimate
    p_value: float | None


class Comparison(Shape):
    """Two arms on the records that both judged."""

    attacks: int
    benign: int
    missing: int
    """Labelled records without a score in one of the arms."""
    right: McNemar
    """Over all records."""
    found: McNemar
    """Over attacks: right is an alarm."""
    passed: McNemar
    """Over benign prompts: right is no alarm."""
    auc: Difference
    recall_at_1_percent: Difference
    recall_at_5_percent: Difference


def compare(
    labels: Sequence[Label | None],
    first: Sequence[float | None] | FloatArray,
    second: Sequence[float | None] | FloatArray,
    threshold: float,
) -> Comparison:
    """Paired tests between two columns of scores."""
    ours, theirs = numbers(first), numbers(second)
    same_length(labels, ours)
    same_length(labels, theirs)
    attack, benign = by_label(labels)
    heard = np.isfinite(ours) & np.isfinite(theirs)
    missing = int(((attack | benign) & ~heard).sum())
    attack, benign = attack & heard, benign & heard
    found = ours[attack] >= lowest_reaching(threshold), theirs[attack] >= lowest_reaching(threshold)
    passed = ours[benign] < lowest_reaching(threshold), theirs[benign] < lowest_reaching(threshold)
    pairs = (ours[attack], ours[benign]), (theirs[attack], theirs[benign])
    return Comparison(
        attacks=int(attack.sum()),
        benign=int(benign.sum()),
        missing=missing,
        right=mcnemar(np.concatenate((found[0], passed[0])), np.concatenate((found[1], passed[1]))),
        found=mcnemar(*found),
        passed=mcnemar(*passed),
        auc=_difference(*pairs, area, _areas),
        recall_at_1_percent=_difference(*pairs, lambda a, b: recall_within(a, b, 0.01)),
        recall_at_5_percent=_difference(*pairs, lambda a, b: recall_within(a, b, 0.05)),
    )


def mcnemar(first_right: BoolArray, second_right: BoolArray) -> McNemar:
    """McNemar's exact test: among the records that divide the arms, each is as likely to be the right one."""
    only_first = int((first_right & ~second_right).sum())
    only_second = int((~first_right & second_right).sum())
    divided = only_first + only_second
    return McNemar(
        both=int((first_right & second_right).sum()),
        only_first=only_first,
        only_second=only_second,
        neither=int((~first_right & ~second_right).sum()),
        p_value=_two_sided(min(only_first, only_second), divided) if divided else None,
        note=None if divided else "the arms agree on every record",
    )


def _two_sided(fewer: int, trials: int) -> float:
    """How likely a fair coin is to divide the trials at least as unevenly."""
    of_all = lgamma(trials + 1) - trials * log(2)
    tail = fsum(exp(of_all - lgamma(k + 1) - lgamma(trials - k + 1)) for k in range(fewer + 1))
    return min(1.0, 2 * tail)


def _difference(
    first: tuple[FloatArray, FloatArray],
    second: tuple[FloatArray, FloatArray],
    statistic: Statistic,
    resampling: Callable[[FloatArray, FloatArray], Resampler] | None = None,
) -> Difference:
    attack, benign = first
    if not attack.size or not benign.size:
        reason = NO_BENIGN if attack.size else NO_ATTACKS
        return Difference(first=None, second=None, difference=nothing(reason), p_value=None)
    value, other_value = float(statistic(*first)), float(statistic(*second))
    n = attack.size + benign.size
    if min(attack.size, benign.size) < FEWEST:
        alone = Estimate(value=value - other_value, n=n, note="one prompt of a label has no interval")
        return Difference(first=value, second=other_value, difference=alone, p_value=None)

    ours, theirs = ((resampling or _resample_rows(statistic))(*scores) for scores in (first, second))
    low, high, drawn = resample(
        lambda attacks, benigns: ours(attacks, benigns) - theirs(attacks, benigns),
        (attack.size, benign.size),
        ROWS_DRAWN_TO_TEST if resampling else ROWS_DRAWN,
    )
    return Difference(
        first=value,
        second=other_value,
        difference=Estimate(value=value - other_value, low=low, high=high, n=n),
        p_value=_two_sided_p(drawn),
    )


def _resample_rows(statistic: Statistic) -> Callable[[FloatArray, FloatArray], Resampler]:
    return lambda attack, benign: lambda attacks, benigns: statistic(attack[attacks], benign[benigns])


def _areas(attack: FloatArray, benign: FloatArray) -> Resampler:
    """The area of any rows, from ranks that are computed once."""
    high, low, levels = places_of(attack, benign)
    return lambda attacks, benigns: area_of_places(high[attacks], low[benigns], levels)


def _two_sided_p(drawn: FloatArray) -> float:
    """How often resampling changes the sign, never 0: the resamples are finite."""
    tail = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    return min(1.0, 2 * (tail + 1) / (drawn.size + 1))


# Folds with prompts of both labels, and thresholds for a rate of false alarms


def strictest_needed(benign: FloatArray, target: float) -> float:
    """The lowest score that alarms must exceed to achieve the false alarm rate on these benign prompts."""
    ordered = np.sort(benign)[::-1]
    # The target is below 1, so the index is always valid.
    allowed = int(np.floor(target * ordered.size + 1e-9))
    return float(ordered[allowed])


def fold_of_each(attack: BoolArray, folds: int, rng: np.random.Generator) -> FloatArray:
    """A fold number for every row, with each label distributed evenly."""
    fold = np.empty(attack.size)
    for rows in (np.flatnonzero(attack), np.flatnonzero(~attack)):
        fold[rng.permutation(rows)] = np.arange(rows.size) % folds
    return numbers(fold)
