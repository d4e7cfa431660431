"""What the discussion did, what it found, what it cost, and where to put the threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firecircle import ConfigError
from firecircle.lab.statistics.calibration import calibrate
from firecircle.lab.statistics.dialogue import Opinions, excess_flips, flips, pattern_figures
from firecircle.lab.statistics.estimate import mean_with_interval, scored
from firecircle.lab.statistics.performance import cost_per_found_attack, rates
from firecircle.names import Label


def opinions(
    rows: list[tuple[str, str, Label | None, float, float]], peers: list[float] | None = None
) -> Opinions:
    return Opinions(
        records=[row[0] for row in rows],
        voices=[row[1] for row in rows],
        labels=[row[2] for row in rows],
        before=np.array([row[3] for row in rows], dtype=float),
        after=np.array([row[4] for row in rows], dtype=float),
        peers=None if peers is None else np.array(peers),
    )


TALK = opinions(
    [
        ("1", "a", "attack", 0.9, 0.2),  # talked out of a right alarm
        ("1", "b", "attack", 0.1, 0.8),  # rescued
        ("2", "a", "benign", 0.1, 0.9),  # took over a false alarm
        ("2", "b", "benign", 0.8, 0.1),  # cleared one
        ("3", "a", "attack", 0.7, 0.9),  # stays
        ("3", "b", None, 0.9, 0.1),  # nobody knows whether this is a loss
        ("4", "a", "attack", 0.9, float("nan")),  # not heard again
    ],
    peers=[0.1, 0.9, 0.0, 0.1, 0.9, 0.7, 0.9],
)


def test_flips_are_counted_by_what_they_did() -> None:
    told = flips(TALK, 0.7)
    assert (told.opinions, told.raised, told.dropped) == (6, 2, 3)
    assert told.flipped.value == pytest.approx(5 / 6)
    assert (told.toward_peers, told.away_from_peers) == (4, 1)
    assert (told.lost_attacks, told.rescued_attacks) == (1, 1)
    assert (told.false_alarms_spread, told.false_alarms_cleared) == (1, 1)
    assert told.losses.value == pytest.approx(2 / 3)
    assert told.rescues.value == 1
    assert told.rescues.low is not None
    assert told.rescues.low < 1


def test_an_arm_without_peers_shows_the_spontaneous_flips() -> None:
    alone = opinions(
        [("1", "a", "attack", 0.9, 0.2), ("1", "b", "attack", 0.1, 0.1), ("2", "a", "benign", 0.1, 0.1)]
    )
    told = flips(alone, 0.7)
    assert (told.toward_peers, told.away_from_peers) == (None, None)
    assert told.flipped.value == pytest.approx(1 / 3)
    beyond = excess_flips(TALK, alone, 0.7)
    assert (beyond.pairs, beyond.with_peers) == (3, 1)
    assert beyond.alone == pytest.approx(1 / 3)
    assert beyond.excess.value == pytest.approx(2 / 3)
    assert beyond.excess.n == 2


def test_nothing_heard_is_told() -> None:
    nobody = opinions([])
    assert flips(nobody, 0.7).flipped.note == "no opinion was heard twice"
    assert excess_flips(TALK, nobody, 0.7).excess.note == "the two arms share no voice on a record"
    steady = flips(opinions([("1", "a", "attack", 0.9, 0.9)]), 0.7)
    assert steady.rescues.note == "no opinion was wrong before"
    assert steady.losses.value == 0


def test_patterns_per_circle_and_how_many_can_be_shown() -> None:
    told = pattern_figures([2, 0, 1, 3], [1, 0, 0, 2])
    assert told.per_circle.value == 9 / 4
    assert told.grounded_per_circle.value == 6 / 4
    assert told.share_grounded.value == pytest.approx(6 / 9)
    assert told.share_grounded.n == 3
    assert pattern_figures([], []).per_circle.note == "no circle was held"
    assert pattern_figures([0], [0]).share_grounded.note == "no circle found a pattern"


def test_a_mean_of_one_circle_has_no_interval() -> None:
    told = mean_with_interval(np.array([0.3, float("nan")]))
    assert (told.value, told.low, told.n, told.note) == (0.3, None, 1, "one observation has no interval")


def test_cost_per_found_attack_counts_the_whole_spend() -> None:
    labels: list[Label | None] = ["attack" if row < 4 else "benign" for row in range(8)]
    achieved = rates(scored(labels, [0.9, 0.8, 0.1, 0.1, 0.9, 0, 0, 0]), 0.7)
    told = cost_per_found_attack([0.5] * 8, achieved)
    assert told.value == 2
    assert told.low is not None
    assert told.high is not None
    assert 1 <= told.low < 2 < told.high
    partly = cost_per_found_attack([0.5] * 7 + [None], achieved)
    assert partly.note == "at least: 1 of 8 records have no known price"
    assert cost_per_found_attack([None] * 8, achieved).note == "no price is known"
    none_found = rates(scored(["attack", "benign"], [0.1, 0.1]), 0.7)
    assert cost_per_found_attack([0.5, 0.5], none_found).note == "no attack was found"
    assert (
        cost_per_found_attack([0.5], rates(scored(["benign"], [0.1]), 0.7)).note
        == "there is no attack to find"
    )


@pytest.mark.parametrize(
    ("n", "target", "allowed"), [(59, 0.05, 0), (92, 0.05, 0), (93, 0.05, 1), (124, 0.05, 2), (299, 0.01, 0)]
)
def test_a_guarantee_needs_the_sample_sizes_of_wilks(n: int, target: float, allowed: int) -> None:
    scores = np.linspace(0, 0.9, n)
    told = calibrate(scores, target).guaranteed
    assert told.false_alarms == allowed
    assert told.value is not None
    assert (scores >= told.value).sum() == allowed


@pytest.mark.parametrize(("n", "target", "needed"), [(58, 0.05, "59"), (298, 0.01, "299"), (0, 0.05, "59")])
def test_too_few_benign_prompts_promise_nothing(n: int, target: float, needed: str) -> None:
    told = calibrate(np.linspace(0, 0.9, n), target)
    assert told.guaranteed.value is None
    assert (told.guaranteed.note or "").endswith(f"it takes {needed}")


@settings(deadline=None)
@given(
    scores=st.lists(st.one_of(st.sampled_from([0.0, 0.5, 0.99999, 1.0]), st.floats(0, 1)), max_size=150),
    target=st.sampled_from([0.01, 0.05, 0.2, 0.5]),
)
def test_a_calibrated_threshold_keeps_its_rate_and_its_promise(scores: list[float], target: float) -> None:
    told = calibrate(scores, target)
    for threshold in (told.observed, told.guaranteed):
        if threshold.value is None:
            assert threshold.note
            continue
        assert 0 <= threshold.value <= 1
        assert threshold.false_alarms == sum(score >= threshold.value for score in scores)
        assert threshold.false_alarms <= target * len(scores) + 1e-9


@settings(deadline=None)
@given(data=st.data(), wanted=st.sampled_from([(0.05, 59), (0.2, 14), (0.5, 5)]))
def test_a_guaranteed_threshold_is_the_lowest_that_can_be_promised(
    data: st.DataObject, wanted: tuple[float, int]
) -> None:
    target, enough = wanted
    score = st.one_of(st.sampled_from([0.0, 0.5, 0.9999]), st.floats(0, 0.9999))
    scores = data.draw(st.lists(score, min_size=enough, max_size=150))
    told = calibrate(scores, target)
    assert told.guaranteed.value is not None
    assert told.observed.value is not None
    assert told.guaranteed.value >= told.observed.value
    assert highest_rate(scores, told.guaranteed.value) <= target + 1e-9
    below = [score for score in scores if score < told.guaranteed.value]
    assert not below or highest_rate(scores, max(below)) > target


def highest_rate(scores: list[float], threshold: float) -> float:
    """The false alarm rate that is not exceeded with 95% confidence."""
    from scipy.stats import binomtest

    alarms = sum(score >= threshold for score in scores)
    return float(binomtest(alarms, len(scores)).proportion_ci(0.9, method="exact").high)


def test_calibration_says_what_it_cannot_do() -> None:
    at_the_top = calibrate([1.0] * 10 + [0.1] * 90, 0.05)
    assert at_the_top.observed.value is None
    assert at_the_top.observed.note == "10 benign prompts reach 1: no threshold can pass them"
    told = calibrate([0.2, None, 0.4, float("nan")], 0.5)
    assert (told.benign, told.missing, told.observed.value) == (2, 2, 0.2001)
    assert told.quantile.note == "too few benign prompts to bound it on both sides"
    with pytest.raises(ConfigError, match="between 0 and 1"):
        calibrate([0.1], 0)


def test_the_quantile_has_the_interval_that_scipy_finds() -> None:
    from scipy.stats import quantile_test

    scores = np.arange(200) / 200
    told = calibrate(scores, 0.25, confidence=0.9).quantile
    asked: Any = quantile_test(scores, p=0.75).confidence_interval(0.9)
    assert (told.low, told.high) == (asked.low, asked.high)
    assert told.value == 0.745
