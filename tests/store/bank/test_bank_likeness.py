"""What means the same and what does not: the threshold holds on pairs that were not used to choose it."""

from __future__ import annotations

import pytest

from bench.bank import WANTED_PRECISION, best_threshold, pairs, quality
from firecircle.store.bank.likeness import SAME_MEANING, likeness

LABELLED = pairs()


def scored(half: str) -> list[tuple[float, bool]]:
    return [(likeness(pair.one, pair.other, pair.kind), pair.same) for pair in LABELLED if pair.half == half]


def test_the_threshold_is_the_one_the_tuning_half_asks_for() -> None:
    assert best_threshold(scored("tuning")) == pytest.approx(SAME_MEANING)


def test_few_pairs_of_the_held_half_are_merged_wrongly() -> None:
    told = quality(scored("held"), SAME_MEANING)
    assert told.precision >= WANTED_PRECISION
    assert told.recall > 0.3


def test_no_description_of_one_half_is_in_the_other() -> None:
    halves = [
        {text for pair in LABELLED if pair.half == half for text in (pair.one, pair.other)}
        for half in ("tuning", "held")
    ]
    assert len(LABELLED) >= 200
    assert not halves[0] & halves[1]


@pytest.mark.parametrize("pair", LABELLED[::40], ids=lambda pair: pair.one[:20])
def test_likeness_is_symmetric_and_bounded(pair: object) -> None:
    from bench.bank import Pair

    assert isinstance(pair, Pair)
    there = likeness(pair.one, pair.other, pair.kind)
    assert there == pytest.approx(likeness(pair.other, pair.one, pair.kind))
    assert 0.0 <= there <= 1.0
    assert likeness(pair.one, pair.one, pair.kind) == 1.0
