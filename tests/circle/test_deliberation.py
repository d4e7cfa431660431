"""What became of reasons: quotes, positions, dissent, vetoes, and the two readings of a circle."""

from __future__ import annotations

from typing import Any

import pytest

from firecircle import FireCircleResult, fire_circle_evaluate
from firecircle.circle.measures import deliberation, two_readings
from firecircle.circle.questions import reply_schema
from firecircle.lab.statistics.dialogue import gap_figures
from tests.scripted import PROMPT, Script, circle, pattern, says

CLAIM = pattern("temporal_inconsistency")
THANKS = pattern("polite_extraction", quote="thank you so much")


async def held(**lines: list[Any]) -> FireCircleResult:
    config = circle(*lines, empty_chair=True, early_stop_convergence=0.0)
    return await fire_circle_evaluate(PROMPT, config, caller=Script(lines))


@pytest.fixture
async def result() -> FireCircleResult:
    """`a` drops its quote, `b` takes it up and rises, `c` never sees anything."""
    return await held(
        a=[says(0.9), says(0.9, patterns_observed=[CLAIM]), says(0.3, veto="no grounds")],
        b=[
            says(0.2),
            says(0.2, patterns_observed=[THANKS]),
            says(0.8, consensus_patterns=[CLAIM, THANKS], veto="The guest's words were erased."),
        ],
        c=[says(0.1, reasoning="An ordinary request."), says(0.1), says(0.1, reasoning="Still ordinary.")],
    )


async def test_quotes_that_last_and_peers_that_are_cited(result: FireCircleResult) -> None:
    found = deliberation(result)
    assert (found.quotes, found.quotes_held, found.survival) == (2, 2, 1.0)
    assert (found.peers_cited, found.answers) == (1, 6)


async def test_positions_change_with_and_without_new_words(result: FireCircleResult) -> None:
    found = deliberation(result)
    assert (found.moved_with_new_words, found.moved_without) == (1, 1)  # b rose with a's words, a fell


async def test_dissent_at_the_end_has_its_reason(result: FireCircleResult) -> None:
    dissent = {each.model: each.reason for each in deliberation(result).dissent}
    assert dissent == {"a": "my F is 0.3", "c": "Still ordinary."}


async def test_grounds_for_a_veto_are_recorded_and_change_nothing(result: FireCircleResult) -> None:
    assert [(veto.model, veto.grounds) for veto in deliberation(result).vetoes] == [
        ("b", "The guest's words were erased.")
    ]
    assert result.consensus is not None
    assert result.consensus.falsehood == 0.9
    words = {each.model: each.veto for each in result.dialogue_history[-1].evaluations}
    assert words == {"a": "no grounds", "b": "The guest's words were erased.", "c": None}
    assert FireCircleResult.model_validate_json(result.model_dump_json()) == result


def test_only_the_last_round_asks_for_a_veto() -> None:
    assert "veto" in reply_schema("synthesis")["required"]
    assert "veto" in reply_schema("synthesis", is_chair=True)["required"]
    assert "veto" not in reply_schema("discussion")["properties"]
    assert "veto" not in reply_schema("synthesis", templates="v1")["properties"]


async def test_the_two_readings_are_those_of_the_last_chair_and_the_others() -> None:
    result = await held(a=[0.2, 0.2, 0.2], b=[0.2, 0.2, 0.2], c=[0.2, 0.2, 0.8])
    readings = two_readings(result.dialogue_history)
    assert readings is not None
    assert (readings.round_number, readings.chair_model) == (3, "c")
    assert readings.present.falsehood == pytest.approx(0.2)
    assert readings.gap == pytest.approx((2 * 0.6**2) ** 0.5 / 3**0.5)
    assert readings.apart_before == pytest.approx(0)


def test_a_gap_of_the_voices_is_no_gap_of_the_chair() -> None:
    """The same voices were as far apart before: beyond them nothing is left."""
    labels = ["attack"] * 20 + ["benign"] * 20
    gaps = [0.3 + step / 100 for step in range(20)] + [0.1 + step / 100 for step in range(20)]
    figures = gap_figures(labels, gaps, gaps)  # type: ignore[arg-type]
    assert figures.larger_in_attacks.value == pytest.approx(0.2)
    assert figures.larger_in_attacks.low is not None
    assert figures.larger_in_attacks.low > 0
    assert figures.beyond_the_voices.value == pytest.approx(0)
