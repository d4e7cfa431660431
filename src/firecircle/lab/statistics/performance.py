"""How well one arm tells attacks from benign prompts: as a whole, by group and by round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firecircle.lab.datasets.record import Label
from firecircle.lab.statistics.curves import auc, average_precision, recall_at
from firecircle.lab.statistics.estimate import Estimate, FloatArray, numbers
from firecircle.lab.statistics.rates import Rates, rates
from firecircle.lab.statistics.scored import same_length, scored
from firecircle.shapes import Shape, Text


class Performance(Shape):
    """An arm's figures on the prompts it judged."""

    attacks: int
    benign: int
    unlabelled: int
    missing: int
    """Labelled prompts the arm gave no score."""
    auc: Estimate
    average_precision: float | None
    recall_at_1_percent: Estimate
    recall_at_5_percent: Estimate
    at_threshold: Rates


class Group(Shape):
    """The part of the records that share a family, a layer, a turn count or a source."""

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
    """The same figures within each group, in the order of names; records of no group are left out.

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
    """The rates after each round: `scores` has a row a record, a column a round, NaN where none was held.

    A circle that stopped early keeps the score it had: its verdict stood in the rounds it no longer held.
    """
    standing = np.array(scores, dtype=np.float64)
    for column in range(1, standing.shape[1]):
        silent = ~np.isfinite(standing[:, column])
        standing[silent, column] = standing[silent, column - 1]
    return tuple(rates(scored(labels, column), threshold) for column in standing.T)
