"""The flow of a circle: who is asked when, who holds the chair, when it stops, what the verdict is."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from firecircle import (
    FireCircleConfig,
    MultiNeutrosophicPrompt,
    PromptError,
    SessionMemory,
    fire_circle_evaluate,
    fire_circle_events,
    get_empty_chair_model,
    reaggregate,
)
from tests.scripted import PROMPT, After, Script, circle, pattern, says


def test_the_chair_rotates_over_the_starting_list() -> None:
    chairs = [get_empty_chair_model(number, ["A", "B", "C"]) for number in (1, 2, 3, 4)]
    assert chairs == [None, "B", "C", "A"]


async def test_the_chair_follows_that_order_in_a_real_circle() -> None:
    script = Script({"A": [0.1, 0.5, 0.1, 0.5], "B": [0.5, 0.1, 0.5, 0.1], "C": [0.9, 0.9, 0.9, 0.9]})
    result = await fire_circle_evaluate(PROMPT, circle("A", "B", "C", max_rounds=4), caller=script)
    assert [held.empty_chair_model for held in result.dialogue_history] == [None, "B", "C", "A"]
    kinds = [held.kind for held in result.dialogue_history]
    assert kinds == ["baseline", "discussion", "discussion", "synthesis"]


@pytest.mark.parametrize("models", [("A", "B"), ("A", "B", "C"), ("A", "B", "C", "D", "E")])
async def test_nobody_holds_the_chair_twice_running(models: tuple[str, ...]) -> None:
    script = Script(
        {model: [0.0, 0.5, 0.0, 0.5] if n % 2 else [1.0, 0.0, 1.0, 0.0] for n, model in enumerate(models)}
    )
    result = await fire_circle_evaluate(PROMPT, circle(*models, max_rounds=4), caller=script)
    chairs = [held.empty_chair_model for held in result.dialogue_history]
    assert all(before != after for before, after in pairwise(chairs))


async def test_a_fixed_chair_and_no_chair() -> None:
    lines = {"A": [0.1, 0.5, 0.1], "B": [0.5, 0.1, 0.5], "C": [0.9, 0.9, 0.9]}
    fixed = circle("A", "B", "C", empty_chair_rotation=False, empty_chair_model="A")
    result = await fire_circle_evaluate(PROMPT, fixed, caller=Script(lines))
    assert [held.empty_chair_model for held in result.dialogue_history] == [None, "A", "A"]
    without = await fire_circle_evaluate(
        PROMPT, circle("A", "B", "C", empty_chair=False), caller=Script(lines)
    )
    assert [held.empty_chair_model for held in without.dialogue_history] == [None, None, None]
    assert without.quorum.advisories


async def test_the_verdict_is_the_highest_falsehood_of_any_round_and_names_whose() -> None:
    script = Script({"a": [0.2, 0.9, 0.4], "b": [0.2, 0.3, 0.3]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b"), caller=script)
    assert result.consensus is not None
    assert (result.consensus.falsehood, result.consensus.model, result.consensus.round_number) == (
        0.9,
        "a",
        2,
    )
    assert result.alarm
    assert [held.round_number for held in result.dialogue_history] == [1, 2, 3]


async def test_ties_go_to_the_earlier_round_then_to_the_voice_listed_first() -> None:
    script = Script({"z": [0.1, 0.8, 0.8], "a": [0.1, 0.8, 0.8], "m": [0.1, 0.1, 0.8]})
    result = await fire_circle_evaluate(PROMPT, circle("z", "a", "m"), caller=script)
    assert result.consensus is not None
    assert (result.consensus.model, result.consensus.round_number) == ("z", 2)


async def test_two_voices_two_rounds() -> None:
    result = await fire_circle_evaluate(
        PROMPT, circle("a", "b", max_rounds=2), caller=Script({"a": [0.2, 0.6], "b": [0.4, 0.9]})
    )
    assert result.consensus is not None
    assert result.consensus.falsehood == 0.9
    assert [held.empty_chair_model for held in result.dialogue_history] == [None, "b"]
    assert [held.kind for held in result.dialogue_history] == ["baseline", "discussion"]


async def test_a_chair_that_is_given_to_one_voice_stays_with_it() -> None:
    lines: dict[str, list[float]] = {model: [0.1, 0.5, 0.1] for model in "abc"}
    fixed = await fire_circle_evaluate(
        PROMPT, circle("a", "b", "c", empty_chair_model="a"), caller=Script(lines)
    )
    assert [held.empty_chair_model for held in fixed.dialogue_history] == [None, "a", "a"]
    assert not fixed.config.empty_chair_rotation
    assert fixed.advisories == ()
    both = circle("a", "b", "c", empty_chair_model="a", empty_chair_rotation=True)
    turning = await fire_circle_evaluate(PROMPT, both, caller=Script(lines))
    assert [held.empty_chair_model for held in turning.dialogue_history] == [None, "b", "c"]
    assert turning.advisories == (
        "empty_chair_model a does not keep the chair: empty_chair_rotation is on too",
    )
    assert reaggregate(turning) == turning


async def test_three_voices_three_rounds_find_a_pattern() -> None:
    seen = says(0.8, patterns_observed=[pattern("temporal_inconsistency")])
    agreed = says(0.7, consensus_patterns=[pattern("temporal_inconsistency")])
    script = Script({"a": [0.3, seen, agreed], "b": [0.2, 0.2, agreed], "c": [0.1, 0.1, 0.1]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c"), caller=script)
    [found] = result.patterns
    assert found.pattern_type == "temporal_inconsistency"
    assert found.models_observing == ("a", "b")
    assert found.examples == ("As we agreed yesterday",)


async def test_unanimity_in_round_1_does_not_stop_a_circle_but_in_round_2_it_does() -> None:
    script = Script({"a": [0.5, 0.5, 0.0], "b": [0.5, 0.55, 1.0]})
    settings = circle("a", "b", early_stop_convergence=0.1)
    result = await fire_circle_evaluate(PROMPT, settings, caller=script)
    assert len(result.dialogue_history) == 2
    assert result.stopped == "converged"


LARGE = tuple("ABCDEFG")


def divided(rounds: int) -> Script:
    return Script({model: [float(n % 2)] * rounds for n, model in enumerate(LARGE)})


async def test_a_divided_large_circle_holds_a_fourth_round() -> None:
    script = divided(4)
    result = await fire_circle_evaluate(PROMPT, circle(*LARGE), caller=script)
    assert len(result.dialogue_history) == 4
    assert result.dialogue_history[3].kind == "synthesis"
    assert "The circle is divided" in script.question_to("A", 4)
    assert "The circle is divided" not in script.question_to("A", 3)


async def test_no_fourth_round_when_told_not_to_or_when_the_circle_is_small() -> None:
    told = circle(*LARGE, extra_round_on_divergence=False)
    assert len((await fire_circle_evaluate(PROMPT, told, caller=divided(3))).dialogue_history) == 3
    small = await fire_circle_evaluate(PROMPT, circle("A", "B", "C"), caller=divided(3))
    assert len(small.dialogue_history) == 3


async def test_all_voices_of_a_round_speak_at_the_same_time() -> None:
    waiting = asyncio.Barrier(5)

    async def together(model: str, messages: list[dict[str, str]]) -> str:
        await asyncio.wait_for(waiting.wait(), timeout=5)
        return says(0.5)

    result = await fire_circle_evaluate(PROMPT, circle(*"abcde"), caller=together)
    assert len(result.dialogue_history) == 3


async def test_the_order_of_arrival_changes_nothing() -> None:
    def script(slow: str) -> Script:
        lines = {"a": [0.2, 0.9, 0.4], "b": [0.2, 0.3, 0.3], "c": [0.9, 0.1, 0.9]}
        return Script({m: [After(0.02, f) if m == slow else f for f in said] for m, said in lines.items()})

    results = [
        await fire_circle_evaluate(PROMPT, circle("a", "b", "c", seed=7), caller=script(slow))
        for slow in "abc"
    ]
    written = {result.without_times().model_dump_json() for result in results}
    assert len(written) == 1


async def test_events_tell_the_whole_story_in_order() -> None:
    script = Script({"a": [0.2, 0.9], "b": [0.2, RuntimeError("gone")], "c": [0.1, 0.4]})
    told = [
        event
        async for event in fire_circle_events(PROMPT, circle("a", "b", "c", max_rounds=2), caller=script)
    ]
    kinds = [event.kind for event in told]
    assert kinds[:2] == ["circle_convened", "round_started"]
    assert kinds[2:7] == ["voice_answered"] * 3 + ["quorum_checked", "round_closed"]
    assert kinds[7] == "round_started"
    assert sorted(kinds[8:11]) == ["voice_answered", "voice_answered", "voice_failed"]
    assert kinds[11:] == ["quorum_checked", "round_closed", "circle_closed"]


async def test_leaving_the_event_loop_early_calls_the_circle_off() -> None:
    script = Script({"a": [0.2, After(60, 0.2)], "b": [0.9, After(60, 0.2)]})
    events = fire_circle_events(PROMPT, circle("a", "b"), caller=script)
    async for event in events:
        if event.kind == "round_closed":
            break
    await events.aclose()  # type: ignore[attr-defined]
    assert len(asyncio.all_tasks()) == 1


async def test_an_empty_prompt_or_an_empty_focus_is_refused_before_anyone_is_asked() -> None:
    script = Script({"a": [], "b": []})
    with pytest.raises(PromptError, match="every layer is empty"):
        await fire_circle_evaluate(MultiNeutrosophicPrompt(user=" \n"), circle("a", "b"), caller=script)
    with pytest.raises(PromptError, match="application layer is empty"):
        await fire_circle_evaluate(PROMPT, circle("a", "b", focus="application"), caller=script)
    assert script.heard == []


async def test_known_turns_and_session_must_agree() -> None:
    with pytest.raises(PromptError, match="turn 1, but the session is at turn 4"):
        await fire_circle_evaluate(
            PROMPT, circle("a", "b"), SessionMemory(turn_count=4), caller=Script({"a": [], "b": []})
        )


async def test_the_embedded_circle_sits_without_key_or_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    result = await fire_circle_evaluate(PROMPT, FireCircleConfig.embedded(seed=1))
    assert result.consensus is not None
    assert result.quorum.valid
    assert not result.partial
