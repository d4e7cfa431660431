"""Weights and thresholds on prompts they were not fitted on."""

from __future__ import annotations

import numpy as np
import pytest

from firecircle.lab.statistics import HeldOut, Weights, fit_weights, held_out, weighted_scores
from firecircle.lab.statistics.estimate import BoolArray, FloatArray


def one_column(
    known: FloatArray, _labels: BoolArray, unseen: FloatArray, _rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    return known[:, 0], unseen[:, 0]


def test_weights_of_a_two_by_two_table_are_its_log_odds() -> None:
    """One yes-or-no feature has a closed solution: 10 of 40 attacks without it, 45 of 60 with it."""
    from scipy.special import expit, logit

    feature = np.array([0.0] * 40 + [1.0] * 60)[:, np.newaxis]
    attack = np.array([True] * 10 + [False] * 30 + [True] * 45 + [False] * 15)
    told = fit_weights(feature, attack, ridge=1e-9)
    assert told.intercept == pytest.approx(logit(0.25), abs=1e-3)
    assert told.slopes[0] == pytest.approx(logit(0.75) - logit(0.25), abs=1e-3)
    held_back = fit_weights(feature, attack, ridge=1e6)
    assert held_back.slopes[0] == pytest.approx(0, abs=1e-3)
    assert expit(held_back.intercept) == pytest.approx(0.55, abs=1e-3)


def test_separable_labels_give_finite_weights() -> None:
    told = fit_weights(np.linspace(-1, 1, 50)[:, np.newaxis], np.linspace(-1, 1, 50) > 0, 0.1)
    assert isinstance(told, Weights)
    assert np.isfinite(told.slopes).all()


def test_fitting_noise_gains_nothing_on_unseen_prompts() -> None:
    rng = np.random.default_rng(8)
    attack = np.arange(120) % 2 == 0
    (told,) = held_out(rng.random((120, 3)), attack, weighted_scores, [0.1])
    assert told.recall.value is not None
    assert told.recall.value < 0.3
    assert told.false_alarm_rate.value == pytest.approx(0.1, abs=0.1)


def test_a_clear_signal_survives_and_targets_are_kept_apart() -> None:
    rng = np.random.default_rng(9)
    attack = np.arange(200) % 2 == 0
    scores = np.clip(rng.normal(np.where(attack, 0.8, 0.3), 0.15), 0, 1)[:, np.newaxis]
    strict, lenient = held_out(scores, attack, one_column, [0.02, 0.3])
    assert strict.recall.value is not None
    assert lenient.recall.value is not None
    assert 0.5 < strict.recall.value < lenient.recall.value
    assert strict.thresholds is not None
    assert lenient.thresholds is not None
    assert lenient.thresholds[1] < strict.thresholds[0]
    assert lenient.false_alarm_rate.value == pytest.approx(0.3, abs=0.05)


def test_too_few_prompts_are_told() -> None:
    (told,) = held_out(np.zeros((10, 1)), np.arange(10) < 9, weighted_scores, [0.05])
    assert isinstance(told, HeldOut)
    assert told.recall.note == "25 prompts of each label are needed to hold some out"
    (nobody,) = held_out(np.empty((0, 1)), np.zeros(0, dtype=np.bool_), weighted_scores, [0.05])
    assert nobody.thresholds is None
