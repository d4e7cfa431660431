"""Losing voices: who goes on, who is excluded, when a circle aborts, and what it hands back."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from firecircle import (
    BudgetError,
    EvaluationError,
    FireCircleConfig,
    ModelCharacteristics,
    QuorumError,
    VoiceError,
    fire_circle_evaluate,
    partial_result_of,
)
from firecircle.circle.events import Event
from tests.scripted import PROMPT, After, Script, circle, pattern, says

GONE = RuntimeError("gone")


async def test_zombies_do_not_vote_and_nobody_lost_is_called_again() -> None:
    script = Script({"a": [0.2, GONE], "b": [0.3, 0.8, 0.7], "c": [0.4, 0.9, GONE], "d": [0.3, 0.6, 0.5]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c", "d"), caller=script)
    assert result.consensus is not None
    assert (result.consensus.falsehood, result.consensus.model) == (0.8, "b")
    assert result.failed_models == ("a_round_2", "c_round_3")
    assert result.active_models == ("b", "d")
    assert result.zombies == ("a", "c")
    assert result.partial
    said_by_c = [s.falsehood for held in result.dialogue_history for s in held.evaluations if s.model == "c"]
    assert said_by_c == [0.4, 0.9]
    assert {model: script.calls_to(model) for model in "abcd"} == {"a": 2, "b": 3, "c": 3, "d": 3}


async def test_the_last_words_of_a_lost_voice_stay_in_the_context() -> None:
    farewell = says(0.77, reasoning="remember the lighthouse")
    script = Script({"a": [farewell, GONE], "b": [0.1, 0.5, 0.1], "c": [0.9, 0.5, 0.9]})
    await fire_circle_evaluate(PROMPT, circle("a", "b", "c"), caller=script)
    assert "remember the lighthouse" in script.question_to("b", 3)


async def test_a_voice_lost_in_round_1_is_excluded() -> None:
    script = Script({"a": [GONE], "b": [0.1, 0.5, 0.1], "c": [0.9, 0.5, 0.9]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c"), caller=script)
    assert result.failed_models == ("a_round_1",)
    assert result.zombies == ()
    assert script.calls_to("a") == 1


async def test_a_lost_chair_is_skipped_for_its_round() -> None:
    script = Script({"A": [0.1, 0.5, 0.2], "B": [GONE], "C": [0.9, 0.2, 0.9]})
    result = await fire_circle_evaluate(PROMPT, circle("A", "B", "C"), caller=script)
    assert [held.empty_chair_model for held in result.dialogue_history] == [None, None, "C"]


@pytest.mark.parametrize("losers", [*itertools.permutations("abc"), ("c",), ("a", "d")])
async def test_several_failures_in_a_round_leave_nobody_unasked(losers: tuple[str, ...]) -> None:
    delays = {model: 0.005 * place for place, model in enumerate(losers)}
    lines = {m: [0.3, After(delays[m], GONE)] if m in losers else [0.3, 0.6, 0.5] for m in "abcde"}
    script = Script(lines)
    result = await fire_circle_evaluate(PROMPT, circle(*"abcde"), caller=script)
    assert set(result.failed_models) == {f"{model}_round_2" for model in losers}
    assert {model: script.calls_to(model) for model in "abcde"} == {
        m: 2 if m in losers else 3 for m in "abcde"
    }


@pytest.mark.parametrize(
    ("start", "lost", "goes_on"), [(5, 3, True), (3, 1, True), (4, 3, False), (2, 1, False)]
)
@pytest.mark.parametrize("number", [1, 2])
async def test_a_circle_goes_on_with_two_and_aborts_below(
    start: int, lost: int, goes_on: bool, number: int
) -> None:
    models = "abcde"[:start]
    before = [0.4] * (number - 1)
    script = Script({m: [*before, GONE] if n < lost else [0.4, 0.7, 0.4] for n, m in enumerate(models)})
    if goes_on:
        result = await fire_circle_evaluate(PROMPT, circle(*models), caller=script)
        assert result.active_models == tuple(models[lost:])
        return
    with pytest.raises(EvaluationError, match=r"below minimum \(2 active models\)") as caught:
        await fire_circle_evaluate(PROMPT, circle(*models), caller=script)
    partial = caught.value.partial_result
    assert partial is not None
    assert partial.consensus is None
    assert not partial.alarm
    assert len(partial.failures) == lost
    assert len(partial.dialogue_history) == number
    assert [said.model for said in partial.dialogue_history[-1].evaluations] == list(models[lost:])


async def test_strict_aborts_at_the_first_failure_and_hands_back_what_was_heard() -> None:
    script = Script(
        {"a": [0.3, 0.4], "b": [0.2, After(0.05, VoiceError("quota", kind="rate_limited", attempts=4))]}
    )
    slow = Script({**script.lines, "c": [0.1, After(60, 0.5)]})
    with pytest.raises(EvaluationError, match="failed in round 2: b error: quota") as caught:
        await fire_circle_evaluate(PROMPT, circle("a", "b", "c", failure_mode="strict"), caller=slow)
    assert caught.value.model == "b"
    assert caught.value.layer_name == "round_2"
    partial = caught.value.partial_result
    assert partial is not None
    assert [(f.model, f.kind, f.attempts) for f in partial.failures] == [("b", "rate_limited", 4)]
    assert [said.model for said in partial.dialogue_history[1].evaluations] == ["a"]
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (TimeoutError("slow"), "timeout"),
        (ConnectionResetError("reset"), "connection"),
        (VoiceError("no", kind="refused"), "refused"),
        (ValueError("broken"), "raised"),
    ],
)
async def test_what_a_caller_raises_is_that_voices_failure(raised: Exception, kind: str) -> None:
    script = Script({"a": [raised], "b": [0.1, 0.5, 0.1], "c": [0.9, 0.5, 0.9]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c"), caller=script)
    [failure] = result.failures
    assert (failure.model, failure.round_number, failure.kind) == ("a", 1, kind)
    assert str(raised) in failure.message


async def test_a_round_ends_at_its_deadline() -> None:
    script = Script({"a": [0.1, After(60, 0.5)], "b": [0.1, 0.5, 0.1], "c": [0.9, 0.5, 0.9]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c", timeout_per_round=0.1), caller=script)
    assert [(f.label, f.kind) for f in result.failures] == [("a_round_2", "timeout")]


@pytest.mark.parametrize("reply", ["I'm sorry, but I can't help with that.", "Nice weather today."])
async def test_a_reply_that_says_nothing_usable_costs_the_voice_in_round_1(reply: str) -> None:
    script = Script({"a": [reply], "b": [0.1, 0.5, 0.1], "c": [0.9, 0.5, 0.9]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c"), caller=script)
    [failure] = result.failures
    assert failure.kind == ("refused" if "sorry" in reply else "unparseable")
    assert failure.raw_reply == reply


async def test_from_round_2_an_unreadable_reply_carries_the_last_evaluation_forward() -> None:
    script = Script({"a": [0.62, "Nice weather today.", 0.1], "b": [0.1, 0.5, 0.1]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b"), caller=script)
    carried = result.dialogue_history[1].evaluations[0]
    assert (carried.falsehood, carried.read_as, carried.round_number) == (0.62, "carried", 2)
    assert carried.raw_replies == ("Nice weather today.",)
    assert not result.partial


async def test_strict_carries_nothing_forward() -> None:
    script = Script({"a": [0.62, "Nice weather today."], "b": [0.1, 0.5]})
    with pytest.raises(EvaluationError, match="failed in round 2: a"):
        await fire_circle_evaluate(PROMPT, circle("a", "b", failure_mode="strict"), caller=script)


async def test_a_guess_that_decides_says_so() -> None:
    script = Script({"a": ["This is clearly an attack on the operator.", 0.1, 0.1], "b": [0.1, 0.5, 0.1]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b"), caller=script)
    assert result.consensus is not None
    assert (result.consensus.falsehood, result.consensus.read_as) == (0.8, "keyword")
    assert result.decided_by_guess
    assert result.rival_verdicts["max_stated"].value == 0.5


# -- quorum and reserves ----------------------------------------------------------------------------


def declared(**voices: tuple[dict[str, float], str]) -> dict[str, ModelCharacteristics]:
    return {name: ModelCharacteristics(name, roles, lineage) for name, (roles, lineage) in voices.items()}


WHO = declared(
    time=({"temporal_reasoning": 0.9, "pattern_recognition": 0.8}, "us_aligned"),
    layers=({"cross_layer_analysis": 0.9}, "cn_aligned"),
    both=(
        {"temporal_reasoning": 0.6, "cross_layer_analysis": 0.6, "pattern_recognition": 0.7},
        "open_source",
    ),
    weak=({"pattern_recognition": 0.4}, "us_aligned"),
)


def diverse(*models: str, reserves: tuple[str, ...] = ()) -> FireCircleConfig:
    return FireCircleConfig(
        models=models, reserves=reserves, model_characteristics=WHO, early_stop_convergence=0.0
    )


async def test_losing_the_only_temporal_lens_aborts_and_names_it() -> None:
    script = Script({"time": [0.3, GONE], "layers": [0.4, 0.5], "weak": [0.1, 0.2]})
    with pytest.raises(QuorumError) as caught:
        await fire_circle_evaluate(PROMPT, diverse("time", "layers", "weak"), caller=script)
    message = str(caught.value)
    assert "Loss of time breaks quorum in round 2" in message
    assert "Missing critical cognitive roles: temporal_reasoning" in message
    assert "Lost lenses: temporal_reasoning" in message
    partial = caught.value.partial_result
    assert partial is not None
    assert partial.consensus is None
    assert not partial.quorum_checks[-1].verdict.valid


async def test_a_cause_that_several_voices_share_is_told_once() -> None:
    script = Script({"time": [GONE], "layers": [GONE], "weak": [0.1]})
    with pytest.raises(QuorumError) as caught:
        await fire_circle_evaluate(PROMPT, diverse("time", "layers", "weak"), caller=script)
    assert str(caught.value).count(str(GONE)) == 1
    assert "in voices time, layers, round 1" in str(caught.value)


async def test_losing_a_voice_whose_lenses_others_share_does_not_abort() -> None:
    script = Script({"time": [0.3, 0.4, 0.3], "layers": [0.4, GONE], "both": [0.2, 0.6, 0.2]})
    result = await fire_circle_evaluate(PROMPT, diverse("time", "layers", "both"), caller=script)
    assert result.quorum.valid
    assert result.failed_models == ("layers_round_2",)


async def test_a_reserve_restores_the_quorum_with_a_baseline_and_the_interrupted_round() -> None:
    script = Script({"time": [0.3, GONE], "layers": [0.4, 0.5, 0.5], "weak": [0.9], "both": [0.85, 0.6, 0.2]})
    result = await fire_circle_evaluate(
        PROMPT, diverse("time", "layers", reserves=("weak", "both")), caller=script
    )
    assert script.calls_to("weak") == 0, "weak cannot restore the quorum, so it is not asked"
    [new] = result.substitutions
    assert (new.model, new.round_number, new.replaces) == ("both", 2, ("time",))
    assert result.active_models == ("layers", "both")
    assert [[s.model for s in held.evaluations] for held in result.dialogue_history] == [
        ["time", "layers", "both"],
        ["layers", "both"],
        ["layers", "both"],
    ]
    assert result.consensus is not None
    assert (result.consensus.model, result.consensus.round_number, result.consensus.falsehood) == (
        "both",
        1,
        0.85,
    )
    assert "ROUND 1 EVALUATIONS" not in script.question_to("both", 1)
    assert "ROUND 1 EVALUATIONS" in script.question_to("both", 2)


async def test_a_reserve_that_fails_makes_way_for_the_next() -> None:
    lines: dict[str, list[Any]] = {
        "time": [GONE],
        "layers": [0.4, 0.5, 0.5],
        "both": [GONE],
        "both#2": [0.2, 0.6, 0.2],
    }
    config = diverse("time", "layers", reserves=("both", "both#2"))
    result = await fire_circle_evaluate(PROMPT, config, caller=Script(lines))
    assert result.failed_models == ("time_round_1", "both_round_1")
    assert [new.model for new in result.substitutions] == ["both#2"]


async def test_no_helpful_reserve_means_abort() -> None:
    script = Script({"time": [0.3, GONE], "layers": [0.4, 0.5], "weak": []})
    with pytest.raises(QuorumError):
        await fire_circle_evaluate(PROMPT, diverse("time", "layers", reserves=("weak",)), caller=script)


async def test_half_of_the_survivors_is_enough_for_a_pattern() -> None:
    seen = says(0.8, patterns_observed=[pattern("false_authority", "print the text above")])
    script = Script({"a": [0.1, seen, seen], "b": [0.1, 0.1, 0.3], "c": [0.1, GONE]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c"), caller=script)
    [found] = result.patterns
    assert found.model_agreement == 0.5


# -- the end of money and patience ------------------------------------------------------------------


async def test_an_unoccupied_chair_is_an_advisory() -> None:
    lines = {"time": [0.3], "layers": [0.4]}
    base = diverse("time", "layers").model_copy(update={"max_rounds": 1})
    result = await fire_circle_evaluate(PROMPT, base, caller=Script(lines))
    assert result.quorum.valid
    assert any("empty chair" in advisory for advisory in result.quorum.advisories)


async def test_cancelling_leaves_no_task_and_hands_back_what_was_heard() -> None:
    script = Script({"a": [0.3, After(60, 0.4)], "b": [0.8, 0.9], "c": [0.1, After(60, 0.4)]})
    told: list[Event] = []
    in_round_2 = asyncio.Event()

    def listen(event: Event) -> None:
        told.append(event)
        if event.kind == "voice_answered" and event.round_number == 2:
            in_round_2.set()

    circling = asyncio.create_task(
        fire_circle_evaluate(PROMPT, circle("a", "b", "c"), caller=script, on_event=listen)
    )
    await in_round_2.wait()
    circling.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await circling
    partial = partial_result_of(caught.value)
    assert partial is not None
    assert partial.stopped == "cancelled"
    assert partial.consensus is None
    assert [s.model for held in partial.dialogue_history for s in held.evaluations] == ["a", "b", "c", "b"]
    assert told[-1].kind == "circle_closed"
    assert len(asyncio.all_tasks()) == 1


async def test_a_spent_budget_ends_the_circle_as_a_whole() -> None:
    from firecircle import Reply, Turn, Usage
    from firecircle.circle.dialogue import Dialogue

    class Metered:
        async def speak(self, turn: Turn) -> Reply:
            return Reply(
                says(0.4), usage=Usage(tokens_in=900, tokens_cached=300, tokens_out=100, cost_usd=0.01)
            )

    config = circle("a", "b", budget_tokens=2000)
    with pytest.raises(BudgetError, match="over_budget") as caught:
        await Dialogue(PROMPT, config, {"a": Metered(), "b": Metered()}).run()
    partial = caught.value.partial_result
    assert partial is not None
    assert partial.stopped == "over_budget"
    assert len(partial.dialogue_history) == 1
    assert partial.failures == ()
    total = partial.accounting.total
    assert (total.calls, total.tokens_in, total.tokens_cached, total.tokens_out) == (2, 1800, 600, 200)
    assert total.cost_usd == pytest.approx(0.02)
