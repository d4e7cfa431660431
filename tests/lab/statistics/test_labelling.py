"""Which label tells most: against the full table, and by simulation with a known curve."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest

from firecircle.lab.statistics.estimate import FloatArray
from firecircle.lab.statistics.labelling import Labelling, labelling

ALARM = 0.7
TRUE_THRESHOLD = 0.45


def _pool(seed: int, size: int = 250) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    falsehood = rng.beta(0.6, 0.8, size)
    attack = (rng.random(size) < 1 / (1 + np.exp(-9 * (falsehood - TRUE_THRESHOLD)))).astype(float)
    shared = falsehood[:, None] + rng.normal(0, 0.15, (size, 4))
    return falsehood, (shared >= ALARM).astype(float), attack


def _labelled(seed: int, labels: int, *, queued: bool) -> Labelling:
    falsehood, alarms, attack = _pool(seed)
    known = np.full(len(attack), np.nan)
    order = np.random.default_rng(seed).permutation(len(attack))
    for number in range(labels):
        gains = labelling(falsehood, alarms, known, ALARM).gains
        place = int(np.argmax(np.where(np.isnan(known), gains, -1.0))) if queued else order[number]
        known[place] = attack[place]
    return labelling(falsehood, alarms, known, ALARM)


def test_with_every_label_the_voices_are_worth_what_their_errors_say() -> None:
    pytest.importorskip("scipy", reason="the extra `lab` is not installed")
    from firecircle.lab.statistics.voices import error_correlation

    falsehood, alarms, attack = _pool(1)
    known = labelling(falsehood, alarms, attack, ALARM).effective
    errors = error_correlation("abcd", np.abs(alarms - attack[:, None]).T)
    assert known is not None
    assert known.value == pytest.approx(errors.effective_voices)
    assert known.low == known.value == known.high


def test_fifty_labels_of_the_queue_tell_more_than_sixty_at_random() -> None:
    queued = [_labelled(seed, 50, queued=True) for seed in range(8)]
    drawn = [_labelled(seed, 60, queued=False) for seed in range(8)]
    for of in ("threshold", "effective"):
        assert median(_width(one, of) for one in queued) < median(_width(one, of) for one in drawn)
    holds = [one.threshold.low <= TRUE_THRESHOLD <= one.threshold.high for one in queued]  # type: ignore[operator]
    assert sum(holds) >= 7


def test_a_label_that_is_known_teaches_nothing_more_and_one_in_doubt_most() -> None:
    falsehood = np.array([0.05, 0.68, 0.99, 0.7])
    alarms = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, np.nan]])
    of = labelling(falsehood, alarms, np.array([0.0, np.nan, np.nan, np.nan]), ALARM)
    assert of.gains[0] == 0
    assert of.about_threshold.argmin() == 0
    assert of.about_threshold[2] < min(of.about_threshold[1], of.about_threshold[3])
    assert labelling(falsehood, alarms[:, :1], np.full(4, np.nan), ALARM).effective is None


def _width(of: Labelling, name: str) -> float:
    estimate = getattr(of, name)
    return float(estimate.high - estimate.low)
