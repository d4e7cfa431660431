"""What means the same and what does not: the threshold holds on pairs that were not used to choose it."""

from __future__ import annotations

import pytest

from bench.bank import WANTED_PRECISION, bank_likeness, best_threshold, pairs, scores_of
from firecircle.lab.statistics.performance import rates
from firecircle.store.bank.search import SAME_MEANING, likeness

LABELLED = pairs()


def test_the_threshold_is_the_one_the_tuning_half_asks_for() -> None:
    assert best_threshold(scores_of("tuning", bank_likeness, LABELLED)) == pytest.approx(SAME_MEANING)


def test_few_pairs_of_the_held_half_are_merged_wrongly() -> None:
    merging = rates(scores_of("held", bank_likeness, LABELLED), SAME_MEANING)
    assert merging.precision.value is not None
    assert merging.precision.value >= WANTED_PRECISION
    assert merging.found / (merging.found + merging.missed) > 0.3


def test_no_description_of_one_half_is_in_the_other() -> None:
    halves = [
        {text for pair in LABELLED if pair.half == half for text in (pair.first, pair.second)}
        for half in ("tuning", "held")
    ]
    assert len(LABELLED) >= 200
    assert not halves[0] & halves[1]


@pytest.mark.parametrize("pair", LABELLED[::40], ids=lambda pair: pair.first[:20])
def test_likeness_is_symmetric_and_bounded(pair: object) -> None:
    from bench.bank import Pair

    assert isinstance(pair, Pair)
    there = likeness(pair.first, pair.second, pair.kind)
    assert there == pytest.approx(likeness(pair.second, pair.first, pair.kind))
    assert 0.0 <= there <= 1.0
    assert likeness(pair.first, pair.first, pair.kind) == 1.0
