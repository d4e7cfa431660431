"""Thresholds and voice weights (ridge logistic regression) tried on prompts they were not fitted on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from firecircle.lab.statistics.curves import recall_within
from firecircle.lab.statistics.estimate import (
    BoolArray,
    Estimate,
    FloatArray,
    mean_with_interval,
    nothing,
    numbers,
)
from firecircle.shapes import Shape

FOLDS = 5
REPEATS = 10
SEED = 20_002

Scorer = Callable[[FloatArray, BoolArray, FloatArray, np.random.Generator], tuple[FloatArray, FloatArray]]
"""From training rows, their labels and unseen rows to honest scores of both kinds of rows."""


class HeldOut(Shape):
    """What a rule achieves on prompts that played no part in fitting it, averaged over repeated folds."""

    target: float
    """The false alarm rate that the threshold was fitted for on the training folds."""
    recall: Estimate
    false_alarm_rate: Estimate
    thresholds: tuple[float, float] | None
    """The lowest and the highest threshold fitted; an alarm is raised above it."""
    recall_at_target: float | None
    """Recall when the held-out scores are cut at exactly the target rate: the comparison at the same rate."""


def held_out(
    features: FloatArray, attack: BoolArray, scorer: Scorer, targets: Sequence[float]
) -> tuple[HeldOut, ...]:
    """Fit on all folds but one, judge that one, for every fold of every repeat; a result for each target.

    `features` has a row a prompt. The intervals resample prompts.
    """
    if min(int(attack.sum()), int((~attack).sum())) < FOLDS**2:
        # Each inner fold of each training part needs prompts of both labels.
        none = nothing(f"{FOLDS**2} prompts of each label are needed to hold some out", attack.size)
        return tuple(
            HeldOut(target=target, recall=none, false_alarm_rate=none, thresholds=None, recall_at_target=None)
            for target in targets
        )
    rng = np.random.default_rng(SEED)
    trials = [_trial(features, attack, scorer, targets, rng) for _ in range(REPEATS)]
    return tuple(
        _summed(target, attack, [trial[place] for trial in trials]) for place, target in enumerate(targets)
    )


@dataclass(frozen=True, slots=True)
class _Trial:
    """One pass over all folds at one target."""

    alarms: BoolArray
    thresholds: list[float]
    recall_at_target: float


def _trial(
    features: FloatArray,
    attack: BoolArray,
    scorer: Scorer,
    targets: Sequence[float],
    rng: np.random.Generator,
) -> list[_Trial]:
    fold = fold_of_each(attack, FOLDS, rng)
    scores = np.empty(attack.size)
    cut = np.empty((len(targets), FOLDS))
    for number in range(FOLDS):
        out = fold == number
        known, scores[out] = scorer(features[~out], attack[~out], features[out], rng)
        cut[:, number] = [strictest_needed(known[~attack[~out]], target) for target in targets]
    return [
        _Trial(
            alarms=scores > cut[place][fold.astype(int)],
            thresholds=cut[place].tolist(),
            recall_at_target=float(recall_within(scores[attack], scores[~attack], target)),
        )
        for place, target in enumerate(targets)
    ]


def _summed(target: float, attack: BoolArray, trials: list[_Trial]) -> HeldOut:
    share = numbers(np.mean([trial.alarms for trial in trials], axis=0))
    thresholds = [threshold for trial in trials for threshold in trial.thresholds]
    return HeldOut(
        target=target,
        recall=mean_with_interval(share[attack]),
        false_alarm_rate=mean_with_interval(share[~attack]),
        thresholds=(min(thresholds), max(thresholds)),
        recall_at_target=float(np.mean([trial.recall_at_target for trial in trials])),
    )


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


RIDGES = (0.1, 1.0, 10.0)
INNER_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Weights:
    """A weighted sum of features, read as the chance of an attack."""

    intercept: float
    slopes: FloatArray

    def scores(self, features: FloatArray) -> FloatArray:
        """The chance of an attack for every row."""
        from scipy.special import expit

        return numbers(expit(self.intercept + features @ self.slopes))


def fit_weights(features: FloatArray, attack: BoolArray, ridge: float) -> Weights:
    """The weights that make the labels likeliest, large slopes being penalised by `ridge`."""
    from scipy.optimize import minimize
    from scipy.special import expit

    side = np.where(attack, 1.0, -1.0)
    design = np.column_stack((np.ones(attack.size), features))
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 0.0

    def loss(point: FloatArray) -> tuple[float, FloatArray]:
        margin = side * (design @ point)
        value = np.logaddexp(0.0, -margin).sum() + (penalty * point**2).sum() / 2
        return float(value), numbers(design.T @ (-side * expit(-margin)) + penalty * point)

    def curvature(point: FloatArray) -> FloatArray:
        chance = expit(design @ point)
        return numbers((design.T * (chance * (1 - chance))) @ design + np.diag(penalty))

    # This method keeps to small products: the L-BFGS of scipy waits for threads when the machine is busy.
    start = np.zeros(design.shape[1])
    weights = minimize(loss, start, jac=True, hess=curvature, method="trust-ncg").x
    return Weights(float(weights[0]), numbers(weights[1:]))


def weighted_scores(
    features: FloatArray, attack: BoolArray, unseen: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Scores for the training rows as if each were unseen, and for the unseen rows.

    Ridge and threshold must not be chosen on rows the weights were fitted on, so the training rows are scored
    by inner folds.
    """
    fold = fold_of_each(attack, INNER_FOLDS, rng)
    by_ridge = {ridge: _scored_by_folds(features, attack, fold, ridge) for ridge in RIDGES}
    ridge = min(RIDGES, key=lambda ridge_tried: _surprise(by_ridge[ridge_tried], attack))
    return by_ridge[ridge], fit_weights(features, attack, ridge).scores(unseen)


def _scored_by_folds(features: FloatArray, attack: BoolArray, fold: FloatArray, ridge: float) -> FloatArray:
    scores = np.empty(attack.size)
    for number in np.unique(fold):
        out = fold == number
        scores[out] = fit_weights(features[~out], attack[~out], ridge).scores(features[out])
    return scores


def _surprise(scores: FloatArray, attack: BoolArray) -> float:
    likely = np.where(attack, scores, 1 - scores)
    return float(-np.log(np.clip(likely, 1e-12, None)).mean())
