"""Curves, rates and what is read off them, against published examples and scipy's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firecircle import ConfigError
from firecircle.lab.statistics.estimate import Estimate, scored, wilson
from firecircle.lab.statistics.performance import (
    auc,
    average_precision,
    curve,
    performance,
    performance_by_group,
    rates,
    rates_by_round,
    recall_at,
)
from firecircle.names import Label

F = st.one_of(st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.floats(0, 1))
LABELS = st.sampled_from(["attack", "benign", None])
CASES = st.lists(st.tuples(LABELS, F | st.none() | st.just(float("nan"))), max_size=30)
BOTH = st.tuples(st.lists(F, min_size=2, max_size=25), st.lists(F, min_size=2, max_size=25))


def of(attack: list[float], benign: list[float]) -> tuple[list[Label | None], list[float]]:
    return [*["attack"] * len(attack), *["benign"] * len(benign)], attack + benign  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_the_intervals_of_newcombe_1998(hits: int, n: int, low: float, high: float) -> None:
    told = wilson(hits, n)
    assert told.low == pytest.approx(low, abs=5e-5)
    assert told.high == pytest.approx(high, abs=5e-5)


@settings(deadline=None)
@given(n=st.integers(1, 500), data=st.data())
def test_wilson_contains_the_share_and_stays_on_the_scale(n: int, data: st.DataObject) -> None:
    told = wilson(data.draw(st.integers(0, n)), n)
    assert told.value is not None
    assert told.low is not None
    assert told.high is not None
    assert 0 <= told.low <= told.value <= told.high <= 1


def test_wilson_of_nothing_says_so() -> None:
    assert wilson(0, 0) == Estimate(value=None, n=0, note="nothing was observed")


def test_a_textbook_roc_and_precision_recall_curve() -> None:
    data = scored(["benign", "benign", "attack", "attack"], [0.1, 0.4, 0.35, 0.8])
    assert auc(data).value == 0.75
    assert average_precision(data) == pytest.approx(0.8333, abs=1e-4)
    told = [(p.threshold, p.false_alarm_rate, p.recall, p.precision) for p in curve(data).points]
    assert told == [
        (None, 0, 0, None),
        (0.8, 0, 0.5, 1),
        (0.4, 0.5, 0.5, 0.5),
        (0.35, 0.5, 1, pytest.approx(2 / 3)),
        (0.1, 1, 1, 0.5),
    ]


@settings(max_examples=40, deadline=None)
@given(scores=BOTH)
def test_auc_is_mann_whitney_and_the_area_under_the_points(scores: tuple[list[float], list[float]]) -> None:
    from scipy.stats import mannwhitneyu

    attack, benign = scores
    data = scored(*of(attack, benign))
    told = auc(data)
    assert told.value == pytest.approx(mannwhitneyu(attack, benign).statistic / (len(attack) * len(benign)))
    points = curve(data).points
    area = np.trapezoid([p.recall for p in points], [p.false_alarm_rate for p in points])
    assert told.value == pytest.approx(area)
    assert (points[-1].recall, points[-1].false_alarm_rate) == (1, 1)
    assert told.low is not None
    assert told.high is not None
    assert -1e-9 <= told.low <= told.high <= 1 + 1e-9


@settings(max_examples=40, deadline=None)
@given(scores=BOTH, allowed=st.floats(0, 1))
def test_recall_at_a_rate_is_the_best_point_of_the_curve_within_it(
    scores: tuple[list[float], list[float]], allowed: float
) -> None:
    data = scored(*of(*scores))
    within = [p.recall for p in curve(data).points if p.false_alarm_rate <= allowed + 1e-9]
    assert recall_at(data, allowed).value == pytest.approx(max(within))


def test_recall_at_a_rate_that_few_prompts_cannot_show_says_so() -> None:
    told = recall_at(scored(*of([0.9, 0.8, 0.2], [0.1] * 50)), 0.01)
    assert (told.value, told.note) == (1, "50 benign prompts cannot show a rate of 0.01: held to 0")
    assert recall_at(scored(*of([0.9, 0.8, 0.2], [0.1] * 100)), 0.01).note is None


def test_rates_at_a_threshold_count_scores_on_it_as_alarms() -> None:
    told = rates(scored(*of([0.7, 0.9, 0.69, 0.1], [0.7, 0.2, 0.3])), 0.7)
    assert (told.found, told.missed, told.false_alarms, told.passed) == (2, 2, 1, 2)
    assert told.recall.value == 0.5
    assert told.precision.value == pytest.approx(2 / 3)
    assert told.balanced_accuracy.value == pytest.approx((0.5 + 2 / 3) / 2)


def test_a_perfect_result_on_few_prompts_keeps_an_honest_interval() -> None:
    told = rates(scored(*of([0.9] * 5, [0.1] * 5)), 0.7).balanced_accuracy
    assert told.value == told.high == 1
    assert told.low is not None
    assert told.low < 0.8


def test_one_label_alone_gives_reasons_instead_of_figures() -> None:
    told = performance(["benign"] * 3, [0.1, 0.9, None], 0.7)
    assert (told.attacks, told.benign, told.missing) == (0, 2, 1)
    assert told.auc == told.recall_at_1_percent == told.at_threshold.recall
    assert told.auc.note == "there is no attack to find"
    assert told.average_precision is None
    assert told.at_threshold.false_alarm_rate.value == 0.5
    assert performance(["attack"], [0.1], 0.7).auc.note == "there is no benign prompt to raise a false alarm"
    assert curve(scored(["attack"], [0.1])).note


def test_a_single_prompt_of_a_label_has_no_interval() -> None:
    told = auc(scored(["attack", "benign", "benign"], [0.9, 0.1, 0.2]))
    assert (told.value, told.low, told.high) == (1, None, None)
    assert told.note == "one prompt of a label has no interval"


@settings(max_examples=25, deadline=None)
@given(cases=CASES)
def test_any_scores_at_all_give_figures_that_json_can_carry(
    cases: list[tuple[Label | None, float | None]],
) -> None:
    labels, scores = [label for label, _ in cases], [score for _, score in cases]
    told = performance(labels, scores, 0.7)
    assert type(told).model_validate_json(told.model_dump_json()) == told
    assert told.attacks + told.benign + told.unlabelled + told.missing == len(cases)


def test_groups_are_measured_apart() -> None:
    groups = performance_by_group(
        ["history", "plain", "history", None, "plain"],
        ["attack", "benign", "attack", "attack", "benign"],
        [0.9, 0.8, 0.1, 0.9, 0.0],
        0.7,
    )
    assert [group.name for group in groups] == ["history", "plain"]
    assert groups[0].performance.at_threshold.recall.value == 0.5
    assert groups[0].performance.at_threshold.false_alarm_rate.value is None
    assert groups[1].performance.at_threshold.false_alarm_rate.value == 0.5


def test_a_circle_that_stopped_early_keeps_its_verdict() -> None:
    nan = float("nan")
    by_round = rates_by_round(["attack", "benign"], np.array([[0.2, 0.8, nan], [0.1, 0.1, 0.9]]), 0.7)
    assert [(one.found, one.false_alarms) for one in by_round] == [(0, 0), (1, 0), (1, 1)]


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 entries beside 1"):
        scored(["attack", "benign"], [0.1])
