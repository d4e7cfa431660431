"""Thresholds for a stated error, and the share of attacks behind a share of alarms, by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from firecircle.lab.statistics.selective import decided_by, share_of_attacks, stated_error


def judged(n: int, seed: int, apart: float = 2.0) -> tuple[list[str], np.ndarray]:
    """Labels and scores of a judge whose two groups are so far apart."""
    draw = np.random.default_rng(seed)
    labels = ["attack" if one else "benign" for one in draw.random(n) < 0.4]
    odds = draw.normal(0.0, 1.0, n) + apart * np.array([label == "attack" for label in labels]) - apart / 2
    return labels, 1 / (1 + np.exp(-odds))


@pytest.mark.parametrize("error", [0.05, 0.1])
def test_the_error_holds_on_prompts_that_it_was_not_chosen_on(error: float) -> None:
    over = 0
    for seed in range(20):
        labels, scores = judged(2_000, seed)
        found = stated_error(labels[:1_000], scores[:1_000], error)  # type: ignore[arg-type]
        attack = np.array([label == "attack" for label in labels[1_000:]])
        wrong, decided = decided_by(attack, scores[1_000:], found.alarm_from, found.calm_below)
        over += decided > 0 and wrong / decided > error
    assert over <= 2  # it promises 90% of the time


def test_a_better_judge_decides_more() -> None:
    shares = []
    for apart in (1.0, 2.0, 4.0):
        labels, scores = judged(2_000, 1, apart)
        shares.append(stated_error(labels, scores, 0.05).decided)  # type: ignore[arg-type]
    assert shares[0] < shares[1] < shares[2]


def test_few_prompts_promise_nothing() -> None:
    found = stated_error(["attack", "benign"] * 5, [0.9, 0.1] * 5, 0.05)
    assert (found.alarm_from, found.calm_below, found.decided) == (None, None, 0.0)
    assert found.fewest > 10


def test_the_share_of_attacks_is_within_its_interval() -> None:
    """A judge that finds 80% at 5% false alarms, 10% attacks: 12.5% alarms."""
    inside = 0
    for seed in range(100):
        draw = np.random.default_rng(seed)
        found, false = int(draw.binomial(100, 0.8)), int(draw.binomial(200, 0.05))
        attacks = int(draw.binomial(1_000, 0.1))
        alarms = int(draw.binomial(attacks, 0.8) + draw.binomial(1_000 - attacks, 0.05))
        share = share_of_attacks(alarms, 1_000, found=found, attacks=100, false_alarms=false, benign=200)
        assert share.low is not None
        assert share.high is not None
        inside += share.low <= 0.1 <= share.high
    assert inside >= 90


def test_a_judge_that_tells_nothing_apart_has_no_share() -> None:
    blind = share_of_attacks(50, 100, found=50, attacks=100, false_alarms=50, benign=100)
    assert blind.value is None
    few = share_of_attacks(50, 100, found=5, attacks=5, false_alarms=0, benign=5)
    assert few.value is None
