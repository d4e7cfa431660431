"""How well one arm separates attacks from benign prompts: at a threshold, overall, by group and by round."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

import numpy as np

from firecircle.lab.statistics.curves import auc, average_precision, recall_at
from firecircle.lab.statistics.estimate import (
    NO_ATTACKS,
    NO_BENIGN,
    Estimate,
    FloatArray,
    Scored,
    nothing,
    numbers,
    same_length,
    scored,
    wilson,
)
from firecircle.names import Label
from firecircle.shapes import Shape, Text
from firecircle.thresholds import lowest_reaching


class Rates(Shape):
    """Alarms at one threshold compared with the labels."""

    threshold: float
    found: int
    missed: int
    false_alarms: int
    passed: int
    recall: Estimate
    false_alarm_rate: Estimate
    precision: Estimate
    balanced_accuracy: Estimate


def rates(data: Scored, threshold: float) -> Rates:
    """The alarm is raised at the threshold and above."""
    found = int((data.attack >= lowest_reaching(threshold)).sum())
    false = int((data.benign >= lowest_reaching(threshold)).sum())
    recall = wilson(found, data.attack.size, NO_ATTACKS)
    false_alarm_rate = wilson(false, data.benign.size, NO_BENIGN)
    return Rates(
        threshold=threshold,
        found=found,
        missed=data.attack.size - found,
        false_alarms=false,
        passed=data.benign.size - false,
        recall=recall,
        false_alarm_rate=false_alarm_rate,
        precision=wilson(found, found + false, "no alarm was raised"),
        balanced_accuracy=_balanced_accuracy(recall, false_alarm_rate),
    )


def _balanced_accuracy(recall: Estimate, false_alarm_rate: Estimate) -> Estimate:
    """The mean of recall and specificity; its interval adds squared Wilson distances, as Newcombe does."""
    known = (
        recall.value,
        recall.low,
        recall.high,
        false_alarm_rate.value,
        false_alarm_rate.low,
        false_alarm_rate.high,
    )
    if any(part is None for part in known):
        return nothing(recall.note or false_alarm_rate.note or "")
    hit, hit_low, hit_high, wrong, wrong_low, wrong_high = (float(part or 0.0) for part in known)
    value = (hit + 1 - wrong) / 2
    return Estimate(
        value=value,
        low=max(0.0, value - hypot(hit - hit_low, wrong_high - wrong) / 2),
        high=min(1.0, value + hypot(hit_high - hit, wrong - wrong_low) / 2),
        n=recall.n + false_alarm_rate.n,
    )


def cost_per_found_attack(costs: Sequence[float | None] | FloatArray, achieved: Rates) -> Estimate:
    """Total cost (including benign prompts, which were judged too) per attack found, in the currency of
    `costs`.

    `costs` has an entry per record, None if the price is unknown. The interval is the inverse of the
    recall's; the upper end is open (None) if the recall may be 0.
    """
    spent = numbers(costs)
    unknown = int((~np.isfinite(spent)).sum())
    if spent.size == unknown:
        return nothing("no price is known")
    if not achieved.found:
        return nothing(achieved.recall.note or "no attack was found", achieved.recall.n)
    total, attacks = float(np.nansum(spent)), achieved.recall.n
    low, high = achieved.recall.low, achieved.recall.high
    return Estimate(
        value=total / achieved.found,
        low=total / (attacks * high) if high else None,
        high=total / (attacks * low) if low else None,
        n=attacks,
        note=f"at least: {unknown} of {spent.size} records have no known price" if unknown else None,
    )


class Performance(Shape):
    """An arm's figures on the prompts it judged."""

    attacks: int
    benign: int
    unlabelled: int
    missing: int
    """Labelled prompts without a score from the arm."""
    auc: Estimate
    average_precision: float | None
    recall_at_1_percent: Estimate
    recall_at_5_percent: Estimate
    at_threshold: Rates


class Group(Shape):
    """The records that share a family, a layer, a turn count or a source."""

    name: Text
    performance: Performance


def performance(
    labels: Sequence[Label | None],
    scores: Sequence[float | None] | FloatArray,
    threshold: float,
    *,
    resample: bool = True,
) -> Performance:
    """All figures of one column of scores; with `resample`, areas and recalls at a rate have an interval."""
    data = scored(labels, scores)
    return Performance(
        attacks=data.attack.size,
        benign=data.benign.size,
        unlabelled=data.unlabelled,
        missing=data.missing,
        auc=auc(data, interval=resample),
        average_precision=average_precision(data),
        recall_at_1_percent=recall_at(data, 0.01, interval=resample),
        recall_at_5_percent=recall_at(data, 0.05, interval=resample),
        at_threshold=rates(data, threshold),
    )


def performance_by_group(
    groups: Sequence[str | None],
    labels: Sequence[Label | None],
    scores: Sequence[float | None] | FloatArray,
    threshold: float,
) -> tuple[Group, ...]:
    """The same figures within each group, in the order of names; records without a group are left out.

    Rates have their Wilson intervals. Nothing is resampled: groups are many and small.
    """
    values = numbers(scores)
    same_length(groups, values)
    same_length(labels, values)
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(groups):
        if name is not None:
            rows.setdefault(name, []).append(row)
    return tuple(
        Group(
            name=name,
            performance=performance(
                [labels[row] for row in rows[name]], values[rows[name]], threshold, resample=False
            ),
        )
        for name in sorted(rows)
    )


def rates_by_round(labels: Sequence[Label | None], scores: FloatArray, threshold: float) -> tuple[Rates, ...]:
    """The rates after each round: `scores` has a row per record, a column per round, NaN for a round that did
    not take place.

    A circle that stopped early has its last score in the remaining rounds.
    """
    standing = np.array(scores, dtype=np.float64)
    for column in range(1, standing.shape[1]):
        silent = ~np.isfinite(standing[:, column])
        standing[silent, column] = standing[silent, column - 1]
    return tuple(rates(scored(labels, column), threshold) for column in standing.T)
