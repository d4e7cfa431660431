"""Weights for voices: ridge logistic regression, the simplest rule that trusts some voices more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from firecircle.lab.statistics.cross_validation import fold_of_each
from firecircle.lab.statistics.estimate import BoolArray, FloatArray, numbers

RIDGES = (0.1, 1.0, 10.0)
INNER_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Weights:
    """A weighted sum of features, read as the chance of an attack."""

    intercept: float
    slopes: FloatArray

    def scores(self, features: FloatArray) -> FloatArray:
        """The chance of an attack for every row."""
        return numbers(expit(self.intercept + features @ self.slopes))


def fit_weights(features: FloatArray, attack: BoolArray, ridge: float) -> Weights:
    """The weights that make the labels likeliest, large slopes being penalised by `ridge`."""
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
    found = minimize(loss, start, jac=True, hess=curvature, method="trust-ncg").x
    return Weights(float(found[0]), numbers(found[1:]))


def weighted_scores(
    features: FloatArray, attack: BoolArray, unseen: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Scores for the training rows as if each were unseen, and for the unseen rows.

    Ridge and threshold must not be chosen on rows the weights were fitted on, so the training rows are scored
    by inner folds.
    """
    fold = fold_of_each(attack, INNER_FOLDS, rng)
    by_ridge = {ridge: _scored_by_folds(features, attack, fold, ridge) for ridge in RIDGES}
    ridge = min(RIDGES, key=lambda one: _surprise(by_ridge[one], attack))
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
