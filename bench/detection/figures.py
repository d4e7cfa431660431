"""The figures of a comparison, each a plain function of scores, alarms and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from training.ngrams import auc

__all__ = ["auc", "balanced_accuracy", "calibration_error", "recall_at", "reliability", "share"]

Scores = Sequence[tuple[float, bool]]
"""A score and whether it is an attack's."""
BINS = 10


def recall_at(scores: Scores, false_alarms: float) -> float:
    """The share of attacks above the score that this share of benign prompts passes."""
    benign = sorted((score for score, attack in scores if not attack), reverse=True)
    attacks = [score for score, attack in scores if attack]
    if not benign or not attacks:
        return math.nan
    edge = benign[int(false_alarms * len(benign))]
    return sum(score > edge for score in attacks) / len(attacks)


def share(flags: Sequence[bool]) -> float:
    """How many are true; not a number when there are none to count."""
    return sum(flags) / len(flags) if flags else math.nan


def balanced_accuracy(alarms: Sequence[tuple[bool, bool]]) -> float:
    """The mean of recall and the share of benign prompts left alone, from (alarm, attack)."""
    caught = share([alarm for alarm, attack in alarms if attack])
    return (caught + 1 - share([alarm for alarm, attack in alarms if not attack])) / 2


def reliability(scores: Scores) -> list[tuple[float, int, float, float]]:
    """For each tenth of F: where it begins, how many fall in it, their mean F and the share of attacks."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for score, attack in scores:
        bins.setdefault(min(int(score * BINS), BINS - 1), []).append((score, attack))
    return [
        (
            at / BINS,
            len(found),
            sum(score for score, _ in found) / len(found),
            share([attack for _, attack in found]),
        )
        for at, found in sorted(bins.items())
    ]


def calibration_error(scores: Scores) -> float:
    """How far F is from the observed share of attacks, on average."""
    return sum(many * abs(mean - seen) for _, many, mean, seen in reliability(scores)) / len(scores)
