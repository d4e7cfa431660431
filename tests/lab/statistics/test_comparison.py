"""Two arms on the same records, and many of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firecircle.lab.statistics.comparison import compare, holm, mcnemar
from firecircle.lab.statistics.dialogue import chair_effect
from firecircle.names import Label

LABELS: list[Label | None] = ["attack" if row < 30 else "benign" for row in range(60)]


def spread(center: float, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    return [float(f) for f in np.clip(rng.normal([center] * 30 + [0.3] * 30, 0.15), 0, 1)]


def test_mcnemar_on_one_against_nine() -> None:
    first = np.array([True] * 1 + [False] * 9 + [True] * 5 + [False] * 2)
    second = np.array([False] * 1 + [True] * 9 + [True] * 5 + [False] * 2)
    told = mcnemar(first, second)
    assert (told.both, told.only_first, told.only_second, told.neither) == (5, 1, 9, 2)
    assert told.p_value == pytest.approx(22 / 1024)


@settings(deadline=None)
@given(pairs=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40))
def test_mcnemar_is_symmetric(pairs: list[tuple[bool, bool]]) -> None:
    first = np.array([one for one, _ in pairs], dtype=np.bool_)
    second = np.array([other for _, other in pairs], dtype=np.bool_)
    there, back = mcnemar(first, second), mcnemar(second, first)
    assert there.p_value == back.p_value
    assert (there.only_first, there.only_second) == (back.only_second, back.only_first)
    assert (there.p_value is None) == (there.note is not None)


def test_a_clearly_better_arm_is_told_from_chance() -> None:
    told = compare(LABELS, spread(0.8, 1), spread(0.4, 2), 0.7)
    assert told.auc.difference.value is not None
    assert told.auc.difference.low is not None
    assert 0 < told.auc.difference.low < told.auc.difference.value
    assert told.auc.p_value is not None
    assert told.auc.p_value < 0.01
    assert told.found.p_value is not None
    assert told.found.p_value < 0.01
    assert told.passed.only_first + told.passed.only_second < 5


def test_an_arm_against_itself_shows_nothing() -> None:
    told = compare(LABELS, spread(0.6, 3), spread(0.6, 3), 0.7)
    assert told.auc.difference.model_dump(include={"value", "low", "high"}) == {
        "value": 0,
        "low": 0,
        "high": 0,
    }
    assert told.auc.p_value == 1
    assert told.right.note == "the arms agree on every record"


def test_swapping_the_arms_turns_the_sign() -> None:
    there = compare(LABELS, spread(0.7, 4), spread(0.5, 5), 0.7).auc
    back = compare(LABELS, spread(0.5, 5), spread(0.7, 4), 0.7).auc
    assert there.difference.value == pytest.approx(-(back.difference.value or 0))
    assert there.difference.low == pytest.approx(-(back.difference.high or 0))
    assert there.p_value == back.p_value


def test_only_records_that_both_judged_are_compared() -> None:
    told = compare(["attack", "benign", "attack", None], [0.9, None, 0.9, 0.9], [0.9, 0.1, None, 0.1], 0.7)
    assert (told.attacks, told.benign, told.missing) == (1, 0, 2)
    assert told.auc.difference.note == "there is no benign prompt to raise a false alarm"
    alone = compare(["attack", "benign"], [0.9, 0.1], [0.1, 0.9], 0.7)
    assert (alone.auc.difference.value, alone.auc.p_value) == (1, None)
    nobody = compare([], [], [], 0.7)
    assert nobody.right.p_value is None


def test_holm_gives_the_published_corrections() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx((0.05, 0.08, 0.09, 0.09, 0.09))
    assert holm([None, 0.02, float("nan"), 0.9]) == (None, 0.04, None, 0.9)
    assert holm([]) == ()


@settings(deadline=None)
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_corrections_only_ever_weaken_a_claim_and_holm_is_the_stricter(p: list[float]) -> None:
    from scipy.stats import false_discovery_control

    strict, lenient = np.array(holm(p), dtype=float), false_discovery_control(p)
    assert (strict >= np.array(p)).all()
    assert (strict <= 1).all()
    assert (strict >= lenient - 1e-12).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(strict[order]) >= 0).all()


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["attack", "benign", None]), *[st.floats(0, 1) | st.none() for _ in range(2)]
        ),
        max_size=12,
    )
)
def test_any_pair_of_arms_gives_a_comparison(
    rows: list[tuple[Label | None, float | None, float | None]],
) -> None:
    told = compare([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows], 0.7)
    assert type(told).model_validate_json(told.model_dump_json()) == told


def test_a_chair_that_brings_nothing_is_flagged() -> None:
    idle = chair_effect(LABELS, spread(0.6, 6), spread(0.6, 6), [0.0] * 58 + [0.5, None], 0.7)
    assert idle.mean_influence.value == pytest.approx(0.5 / 59)
    assert idle.performative is True
    busy = chair_effect(LABELS, spread(0.7, 6), spread(0.6, 6), [0.2, 0.3] * 30, 0.7)
    assert busy.performative is False
    assert busy.comparison.attacks == 30
    absent = chair_effect(LABELS, spread(0.6, 6), spread(0.6, 6), [None] * 60, 0.7)
    assert (absent.performative, absent.mean_influence.note) == (None, "no circle held a chair")
