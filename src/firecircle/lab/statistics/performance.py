"""How well scores tell attacks apart: rates at a threshold, ROC and AUC, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import hypot

import numpy as np
from numpy.typing import NDArray

from firecircle.lab.statistics.estimate import (
    FEWEST,
    NO_ATTACKS,
    NO_BENIGN,
    BoolArray,
    Estimate,
    FloatArray,
    RowNumbers,
    Scored,
    nothing,
    numbers,
    resample,
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


Places = NDArray[np.int64]
"""Scores as ranks among all distinct ones."""


class CurvePoint(Shape):
    """The performance of an alarm at `threshold` and above. A curve begins without any alarm."""

    threshold: float | None
    recall: float
    false_alarm_rate: float
    precision: float | None
    """None without an alarm."""


class Curve(Shape):
    """Every relevant threshold, from strict to lenient; without both labels empty, with the reason."""

    points: tuple[CurvePoint, ...] = ()
    note: Text | None = None


def curve(data: Scored) -> Curve:
    """The points of the ROC (recall over false alarm rate) and of the PR curve (precision over recall)."""
    if data.one_class:
        return Curve(note=data.one_class)
    thresholds, found, false = _counts(data)
    corner = _corners(found)
    points = [CurvePoint(threshold=None, recall=0.0, false_alarm_rate=0.0, precision=None)]
    points += [
        CurvePoint(
            threshold=float(threshold),
            recall=float(hits / data.attack.size),
            false_alarm_rate=float(wrong / data.benign.size),
            precision=float(hits / (hits + wrong)),
        )
        for threshold, hits, wrong in zip(thresholds[corner], found[corner], false[corner], strict=True)
    ]
    return Curve(points=tuple(points))


def _counts(data: Scored) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For every score as threshold, highest first: the attacks found and the false alarms."""
    thresholds = np.unique(np.concatenate((data.attack, data.benign)))[::-1]
    found = data.attack.size - np.searchsorted(np.sort(data.attack), thresholds, side="left")
    false = data.benign.size - np.searchsorted(np.sort(data.benign), thresholds, side="left")
    return numbers(thresholds), numbers(found), numbers(false)


def _corners(found: FloatArray) -> BoolArray:
    """Which points to show: among thresholds that find the same attacks, only the first and the last."""
    gained = np.diff(found, prepend=0.0) > 0
    corners: BoolArray = gained | np.append(gained[1:], True)
    return corners


def auc(data: Scored, *, interval: bool = True) -> Estimate:
    """The chance that an attack scores above a benign prompt, with ties counting half."""
    if data.one_class:
        return nothing(data.one_class)
    value = float(area(data.attack, data.benign))
    if not interval:
        return Estimate(value=value, n=data.attack.size + data.benign.size)
    attack, benign, levels = places_of(data.attack, data.benign)
    return _with_interval(
        data, value, lambda ours, theirs: area_of_places(attack[ours], benign[theirs], levels)
    )


def recall_at(data: Scored, false_alarm_rate: float, *, interval: bool = True) -> Estimate:
    """The recall of the most lenient threshold whose false alarm rate is at most the given one."""
    if data.one_class:
        return nothing(data.one_class)
    value = float(recall_within(data.attack, data.benign, false_alarm_rate))
    estimate = Estimate(value=value, n=data.attack.size + data.benign.size)
    if interval:
        estimate = _with_interval(
            data,
            value,
            lambda attack, benign: recall_within(data.attack[attack], data.benign[benign], false_alarm_rate),
        )
    if data.benign.size * false_alarm_rate < 1:
        note = f"{data.benign.size} benign prompts cannot show a rate of {false_alarm_rate:g}: held to 0"
        return estimate.model_copy(update={"note": note})
    return estimate


def average_precision(data: Scored) -> float | None:
    """Precision averaged over the recall steps. It depends on the share of attacks in the dataset."""
    if data.one_class:
        return None
    _, found, false = _counts(data)
    gained = np.diff(found, prepend=0.0) / data.attack.size
    return float((gained * found / (found + false)).sum())


def area(attack: FloatArray, benign: FloatArray) -> FloatArray:
    """The area under the ROC curve along the last axis, from the rank sum of the attacks."""
    from scipy.stats import rankdata

    n = attack.shape[-1]
    ranks = rankdata(np.concatenate((attack, benign), axis=-1), axis=-1)
    above = ranks[..., :n].sum(axis=-1) - n * (n + 1) / 2
    return numbers(above / (n * benign.shape[-1]))


def area_of_places(attack: Places, benign: Places, levels: int) -> FloatArray:
    """The same area from ranks among `levels` distinct scores: counting is many times faster than sorting,
    and a bootstrap does it thousands of times.
    """
    here, passed = _count_places(attack, levels), _count_places(benign, levels)
    below = np.cumsum(passed, axis=-1) - passed / 2
    return numbers((here * below).sum(axis=-1) / (attack.shape[-1] * benign.shape[-1]))


def _count_places(places: Places, levels: int) -> FloatArray:
    rows = places.reshape(-1, places.shape[-1])
    shifted = rows + np.arange(len(rows))[:, np.newaxis] * levels
    counts = np.bincount(shifted.ravel(), minlength=len(rows) * levels)
    return numbers(counts.reshape(*places.shape[:-1], levels))


def places_of(attack: FloatArray, benign: FloatArray) -> tuple[Places, Places, int]:
    """Each score's rank among the distinct scores, lowest 0, and how many there are."""
    distinct, places = np.unique(np.concatenate((attack, benign)), return_inverse=True)
    return places[: attack.size], places[attack.size :], distinct.size


def recall_within(attack: FloatArray, benign: FloatArray, false_alarm_rate: float) -> FloatArray:
    """The share of attacks above all but the allowed number of benign scores, along the last axis."""
    n = benign.shape[-1]
    allowed = int(np.floor(false_alarm_rate * n + 1e-9))
    if allowed >= n:
        return np.ones(attack.shape[:-1])
    strictest = np.partition(benign, n - 1 - allowed, axis=-1)[..., n - 1 - allowed]
    return numbers((attack > strictest[..., np.newaxis]).mean(axis=-1))


def _with_interval(
    data: Scored, value: float, statistic: Callable[[RowNumbers, RowNumbers], FloatArray]
) -> Estimate:
    n = data.attack.size + data.benign.size
    if min(data.attack.size, data.benign.size) < FEWEST:
        return Estimate(value=value, n=n, note="one prompt of a label has no interval")
    low, high, _ = resample(statistic, (data.attack.size, data.benign.size))
    return Estimate(value=value, low=low, high=high, n=n)
