"""Folds that hold prompts of both labels, and thresholds that keep a rate of false alarms."""

from __future__ import annotations

import numpy as np

from firecircle.lab.statistics.estimate import BoolArray, FloatArray, numbers


def strictest_needed(benign: FloatArray, target: float) -> float:
    """The lowest score that alarms must exceed to keep the false alarm rate on these benign prompts."""
    ordered = np.sort(benign)[::-1]
    # The target is below 1, so there is always one score too many to let through.
    allowed = int(np.floor(target * ordered.size + 1e-9))
    return float(ordered[allowed])


def fold_of_each(attack: BoolArray, folds: int, rng: np.random.Generator) -> FloatArray:
    """A fold number for every row, each label dealt out evenly."""
    fold = np.empty(attack.size)
    for rows in (np.flatnonzero(attack), np.flatnonzero(~attack)):
        fold[rng.permutation(rows)] = np.arange(rows.size) % folds
    return numbers(fold)
