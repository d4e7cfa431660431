"""Agreement, common errors and what a larger circle buys."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from firecircle.circle.quorum import effective_voices
from firecircle.lab.statistics.voices import error_correlation, krippendorff_alpha, rates_by_size
from firecircle.names import Label

_ = float("nan")
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
)
TWO_CODERS = np.array([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]], dtype=float)
MATRICES = arrays(
    np.float64, st.tuples(st.integers(1, 5), st.integers(1, 12)), elements=st.floats(0, 1) | st.just(_)
)


def test_alpha_gives_the_published_values() -> None:
    """Krippendorff, "Computing Krippendorff's Alpha-Reliability": examples A (binary) and D (interval)."""
    assert krippendorff_alpha(OBSERVERS).value == pytest.approx(0.849, abs=5e-4)
    assert krippendorff_alpha(TWO_CODERS).value == pytest.approx(0.095, abs=5e-4)
    assert krippendorff_alpha(OBSERVERS).n == 11


def test_alpha_knows_what_it_cannot_know() -> None:
    assert krippendorff_alpha(np.array([[0.1, _], [_, 0.2]])).note == "no record was judged by two voices"
    same = krippendorff_alpha(np.full((3, 4), 0.2))
    assert (same.value, same.n) == (None, 4)
    assert "same score everywhere" in (same.note or "")
    assert krippendorff_alpha(np.array([[0.1], [0.5]])).note == "one record has no interval"


@settings(max_examples=40, deadline=None)
@given(scores=MATRICES)
def test_alpha_is_at_most_one_and_blind_to_order_and_scale(scores: np.ndarray) -> None:
    told = krippendorff_alpha(scores)
    turned = krippendorff_alpha(scores[::-1, ::-1] * 2 + 1)
    if told.value is not None and turned.value is not None and np.nanstd(scores) > 1e-3:
        assert told.value <= 1 + 1e-9
        assert turned.value == pytest.approx(told.value, abs=1e-6)


def test_phi_is_scipys_association_and_none_for_a_voice_that_never_errs() -> None:
    from scipy.stats.contingency import association, crosstab

    rng = np.random.default_rng(5)
    common = rng.random(200) < 0.3
    wrong = np.stack(
        [common | (rng.random(200) < 0.1), common & (rng.random(200) < 0.8), np.zeros(200)]
    ).astype(float)
    wrong[0, :7] = _
    told = error_correlation(["a", "b", "c"], wrong)
    table = crosstab(wrong[0, 7:], wrong[1, 7:]).count
    assert told.phi[0][1] == pytest.approx(association(table, method="cramer"))
    assert told.phi[0][2] is None
    assert told.mean_phi == told.phi[0][1]
    assert told.participation_ratio is None
    assert told.heard == (193, 200, 200)
    assert told.errors[2] == 0
    assert "2 of 3 pairs" in (told.note or "")


def test_clones_are_one_voice_and_strangers_are_many() -> None:
    rng = np.random.default_rng(6)
    one = (rng.random(4000) < 0.4).astype(float)
    clones = error_correlation(list("abcd"), np.stack([one] * 4))
    assert clones.effective_voices == pytest.approx(1)
    assert clones.participation_ratio == pytest.approx(1)
    strangers = error_correlation(list("abcd"), (rng.random((4, 4000)) < 0.4).astype(float))
    assert strangers.effective_voices == pytest.approx(4, abs=0.2)
    assert strangers.participation_ratio == pytest.approx(4, abs=0.05)
    assert effective_voices(4, 0.5) == 1.6


def test_voices_that_offset_each_other_count_as_independent() -> None:
    told = error_correlation(["a", "b"], np.array([[1.0, 0, 1, 0], [0.0, 1, 0, 1]]))
    assert (told.mean_phi, told.effective_voices) == (-1, 2)
    assert told.participation_ratio == 1
    assert told.note == "errors offset each other; counted as independent"


def test_too_few_voices_or_errors_are_told() -> None:
    assert error_correlation(["a"], np.array([[1.0, 0]])).note == "one voice alone has no error correlation"
    assert error_correlation([], np.empty((0, 0))).effective_voices is None
    never = error_correlation(["a", "b"], np.zeros((2, 5)))
    assert never.effective_voices is None
    assert "no two voices" in (never.note or "")


@settings(max_examples=20, deadline=None)
@given(scores=MATRICES, data=st.data())
def test_rates_by_size_are_the_mean_over_all_circles_of_that_size(
    scores: np.ndarray, data: st.DataObject
) -> None:
    labels: list[Label | None] = data.draw(
        st.lists(
            st.sampled_from(["attack", "benign", None]), min_size=scores.shape[1], max_size=scores.shape[1]
        )
    )
    for told in rates_by_size(labels, scores, 0.7):
        shares = []
        for record, label in zip(scores.T, labels, strict=True):
            heard = record[np.isfinite(record)]
            circles = list(combinations(heard, told.size))
            if label == "benign" and circles:
                shares.append(np.mean([max(circle) >= 0.7 for circle in circles]))
        assert told.false_alarm_rate.n == len(shares)
        assert told.false_alarm_rate.value == (pytest.approx(np.mean(shares)) if shares else None)


def test_the_whole_circle_has_the_exact_interval_of_a_share() -> None:
    scores = np.array([[0.9, 0.1, 0.1], [0.1, 0.8, 0.1]])
    one, two = rates_by_size(["attack", "benign", "benign"], scores, 0.7)
    assert (one.recall.value, one.false_alarm_rate.value) == (0.5, 0.25)
    assert (two.recall.value, two.false_alarm_rate.value) == (1, 0.5)
    assert two.false_alarm_rate.low == pytest.approx(0.0945, abs=1e-3)
