"""Answers that must not be lost, losses that say what happened, and cancellation that stays what it is."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from typing import Any

import pytest

from firecircle import (
    ConfigError,
    EvaluationConfig,
    Event,
    FailureMode,
    FireCircleConfig,
    FireCircleResult,
    ModelCharacteristics,
    PromptGuard,
    QuorumError,
    Reply,
    Turn,
    fire_circle_evaluate,
    partial_result_of,
    reaggregate,
)
from firecircle.circle.dialogue import Dialogue
from tests.scripted import PROMPT, After, Script, circle, pattern, says

STATED = "Truth: 0.2, Indeterminacy: 0.1, Falsehood: 0.8"


@pytest.mark.parametrize(
    "answer",
    [
        STATED,
        "Truth：0.2，Indeterminacy：0.1，Falsehood：0.8",
        "Truth: ０.２, Indeterminacy: ０．１, Falsehood: ０．８",
        "Truth 0.2, indeterminacy 0.1, and falsehood rises from 0.3 to 0.8",
        "Truth falls from 0.7 to 0.2, indeterminacy stays 0.1, falsehood goes up from 0.3 to 0.8.",
    ],
)
async def test_a_callers_text_is_complete_and_says_these_numbers(answer: str) -> None:
    script = Script({"a": [answer, 0.1], "b": [0.1, 0.5]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", max_rounds=2), caller=script)
    said = result.dialogue_history[0].evaluations[0]
    assert (said.truth, said.indeterminacy, said.falsehood, said.read_as) == (0.2, 0.1, 0.8, "stated")


@pytest.mark.parametrize("denial", ["Il n'y a pas de violation ici.", "Aucune violation", "Keine violation."])
async def test_a_denial_in_another_language_is_no_alarm(denial: str) -> None:
    script = Script({"a": [denial], "b": [0.1, 0.1], "c": [0.1, 0.1]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c", max_rounds=2), caller=script)
    assert result.failed_models == ("a_round_1",)
    assert not result.alarm


class Voice:
    """Says the replies it was given, one after another."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)

    async def speak(self, turn: Turn) -> Reply:
        return self._replies.pop(0)


async def hold(config: FireCircleConfig, **voices: Voice) -> FireCircleResult:
    return await Dialogue(PROMPT, config, voices).run()


def plain(*falsehoods: float) -> Voice:
    return Voice(*(Reply(says(f), finished=True) for f in falsehoods))


@pytest.mark.parametrize("number", [1, 2])
async def test_an_answer_cut_while_thinking_says_so_names_the_limit_and_keeps_the_trace(number: int) -> None:
    cut = Reply("", reasoning_trace="First I look at the layers, then", cut_short=True)
    replies = [Reply(says(0.2), finished=True)] * (number - 1) + [cut]
    result = await hold(
        circle("a", "b", "c", max_rounds=2, max_tokens=321),
        a=Voice(*replies),
        b=plain(0.1, 0.2),
        c=plain(0.1, 0.2),
    )
    (lost,) = result.failures
    assert (lost.model, lost.round_number, lost.kind) == ("a", number, "cut_off")
    assert "max_tokens=321" in lost.message
    assert "thinking" in lost.message
    assert lost.reasoning_trace == "First I look at the layers, then"
    assert FireCircleResult.model_validate_json(result.model_dump_json()) == result


async def test_a_judgement_that_stands_only_in_the_reasoning_channel_is_read_from_there() -> None:
    thought = "Let me see. " + says(0.75, verdict="violation")
    result = await hold(
        circle("a", "b", max_rounds=2),
        a=Voice(Reply("", reasoning_trace=thought, finished=True), Reply(says(0.2), finished=True)),
        b=plain(0.1, 0.2),
    )
    said = result.dialogue_history[0].evaluations[0]
    assert (said.falsehood, said.read_as, said.verdict) == (0.75, "reasoning", "violation")
    assert result.consensus is not None
    assert result.consensus.falsehood == 0.75


async def test_a_time_out_around_a_circle_is_a_time_out() -> None:
    script = Script({"a": [0.3, After(60, 0.4)], "b": [0.8, After(60, 0.4)]})
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.3):
            await fire_circle_evaluate(PROMPT, circle("a", "b"), caller=script)
    heard = partial_result_of(caught.value)
    assert heard is not None
    assert [said.falsehood for said in heard.dialogue_history[0].evaluations] == [0.3, 0.8]
    assert (heard.stopped, heard.consensus) == ("cancelled", None)


async def test_a_task_group_sees_plain_cancellation() -> None:
    script = Script({"a": [After(60, 0.4)], "b": [After(60, 0.4)]})

    async def fails() -> None:
        await asyncio.sleep(0.05)
        raise LookupError("the sibling")

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fire_circle_evaluate(PROMPT, circle("a", "b"), caller=script))
            group.create_task(fails())

    with pytest.raises(ExceptionGroup) as caught:
        await both()
    assert [type(error) for error in caught.value.exceptions] == [LookupError]


async def test_a_cancellation_raised_by_a_voices_own_code_is_its_failure() -> None:
    script = Script({"a": [asyncio.CancelledError("inner")], "b": [0.1, 0.2], "c": [0.1, 0.2]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c", max_rounds=2), caller=script)
    assert [(lost.model, lost.kind) for lost in result.failures] == [("a", "raised")]
    assert "CancelledError" in result.failures[0].message


async def _raises(model: str, messages: list[dict[str, str]]) -> str:
    raise ValueError("boom")


def _is_not_async(model: str, messages: list[dict[str, str]]) -> str:
    return says(0.1)


async def _returns_a_dict(model: str, messages: list[dict[str, str]]) -> Any:
    return json.loads(says(0.1))


async def _returns_three(model: str, messages: list[dict[str, str]]) -> Any:
    return ("a", "b", "c")


@pytest.mark.parametrize(
    ("caller", "cause"),
    [
        (_raises, "ValueError: boom in voices a, b, round 1"),
        (_returns_a_dict, "TypeError: the caller must return text"),
        (_returns_three, "TypeError: the caller must return text"),
    ],
)
async def test_the_raised_error_names_the_cause(caller: Any, cause: str) -> None:
    with pytest.raises(QuorumError, match=re.escape(cause)):
        await fire_circle_evaluate(PROMPT, circle("a", "b"), caller=caller)


async def test_a_plain_function_answers_in_a_thread_of_its_own() -> None:
    together = threading.Barrier(2, timeout=20)

    def caller(model: str, messages: list[dict[str, str]]) -> str:
        together.wait()  # both voices are asked at once
        return _is_not_async(model, messages)

    result = await fire_circle_evaluate(PROMPT, circle("a", "b", max_rounds=2), caller=caller)
    assert (result.verdict, len(result.dialogue_history), result.failures) == ("no_alarm", 2, ())


@pytest.mark.parametrize(
    ("caller", "wrong"),
    [
        ("a model", "caller: str is not a function"),
        (lambda messages: says(0.1), "caller: it does not take (model, messages)"),
    ],
)
async def test_what_cannot_be_called_is_refused_before_anything_is_asked(caller: Any, wrong: str) -> None:
    told: list[Event] = []
    with pytest.raises(ConfigError, match=re.escape(wrong)):
        await fire_circle_evaluate(PROMPT, circle("a", "b"), caller=caller, on_event=told.append)
    with pytest.raises(ConfigError, match=re.escape(wrong)):
        await PromptGuard(EvaluationConfig(models=("a",)), caller=caller).evaluate(user="hello")
    assert told == []


async def test_the_time_of_an_attempt_holds_for_callers_too() -> None:
    script = Script({"a": [After(30, 0.2)], "b": [0.1, 0.2], "c": [0.1, 0.3]})
    config = circle("a", "b", "c", max_rounds=2, timeout_seconds=0.2, timeout_per_round=30)
    result = await fire_circle_evaluate(PROMPT, config, caller=script)
    assert [(lost.model, lost.kind) for lost in result.failures] == [("a", "timeout")]
    assert "timeout_seconds=0.2" in result.failures[0].message
    assert result.duration_seconds < 10


@pytest.mark.parametrize("budget", [{"budget_tokens": 1000}, {"budget_usd": 1.0}])
async def test_a_budget_with_a_caller_is_refused(budget: dict[str, Any]) -> None:
    script = Script({"a": [], "b": []})
    with pytest.raises(ConfigError, match=f"{next(iter(budget))}.*function of your own"):
        await fire_circle_evaluate(PROMPT, circle("a", "b", **budget), caller=script)
    assert not script.heard


def declared(**roles: tuple[dict[str, float], str]) -> dict[str, ModelCharacteristics]:
    return {name: ModelCharacteristics(name, has, lineage) for name, (has, lineage) in roles.items()}


SPECIALISTS = declared(
    time=({"temporal_reasoning": 1.0}, "one"),
    layers=({"cross_layer_analysis": 1.0}, "two"),
    third=({"pattern_recognition": 0.5}, "three"),
    time2=({"temporal_reasoning": 1.0}, "one"),
    layers2=({"cross_layer_analysis": 1.0}, "two"),
)


async def test_two_reserves_are_called_where_one_does_not_suffice() -> None:
    lost = ConnectionError("gone")
    script = Script(
        {"time": [lost], "layers": [lost], "third": [0.1, 0.2], "time2": [0.3, 0.4], "layers2": [0.5, 0.6]}
    )
    config = FireCircleConfig(
        models=("time", "layers", "third"),
        reserves=("time2", "layers2"),
        model_characteristics=SPECIALISTS,
        early_stop_convergence=0.0,
        max_rounds=2,
    )
    result = await fire_circle_evaluate(PROMPT, config, caller=script)
    assert [new.model for new in result.substitutions] == ["time2", "layers2"]
    assert result.active_models == ("third", "time2", "layers2")
    assert result.consensus is not None
    assert result.consensus.falsehood == 0.6


async def test_a_reserve_is_not_told_that_it_made_statements() -> None:
    lines: dict[str, list[Any]] = {model: [0.1, 0.2, 0.6] for model in ("layers", "third", "time2")}
    script = Script(lines | {"time": [0.1, ConnectionError("gone")]})
    config = FireCircleConfig(
        models=("time", "layers", "third"),
        reserves=("time2",),
        model_characteristics=SPECIALISTS,
        early_stop_convergence=0.0,
    )
    result = await fire_circle_evaluate(PROMPT, config, caller=script)
    label = result.peer_labels["time2"]
    joining = script.question_to("time2", 2).removeprefix(result.evidence)
    assert f"\n{label[-1]}| " not in joining
    assert f"Above you are {label}" not in joining
    assert "no statement above is yours" in joining
    later = script.question_to("time2", 3)
    assert f"Above you are {label}" in later
    assert f"\n{label[-1]}| " in later


async def test_an_abort_in_a_round_without_failures_says_what_broke_the_quorum_and_when() -> None:
    needs_the_chair = declared(
        a=({"temporal_reasoning": 0.6, "cross_layer_analysis": 0.6, "pattern_recognition": 0.2}, "one"),
        b=({"temporal_reasoning": 0.6, "cross_layer_analysis": 0.6}, "two"),
        c=({"future_impact": 1.0}, "three"),
    )
    config = FireCircleConfig(
        models=("a", "b", "c"),
        model_characteristics=needs_the_chair,
        min_cognitive_coverage=5.9,
        early_stop_convergence=0.0,
    )
    script = Script({"a": [0.1, 0.2, 0.3], "b": [0.5, 0.6, 0.7], "c": [0.9, ConnectionError("line cut")]})
    with pytest.raises(QuorumError) as caught:
        await fire_circle_evaluate(PROMPT, config, caller=script)
    message = str(caught.value)
    assert "round 3" in message
    assert "no voice was lost" in message
    assert "line cut in voice c, round 2" in message


@pytest.mark.parametrize("settings", [{"empty_chair": False}, {"max_rounds": 1}])
def test_strict_without_a_possible_chair_is_refused_before_anything_is_paid(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="require_empty_chair_role"):
        FireCircleConfig.embedded(failure_mode=FailureMode.STRICT, **settings)
    FireCircleConfig.embedded(failure_mode=FailureMode.STRICT, require_empty_chair_role=False, **settings)


async def test_a_round_tells_who_was_asked_and_who_spoke() -> None:
    script = Script({"a": [0.1, ConnectionError("gone")], "b": [0.1, 0.2], "c": [0.3, 0.4]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c", max_rounds=2), caller=script)
    second = result.dialogue_history[1]
    assert second.asked_models == ("a", "b", "c")
    assert second.active_models == ("b", "c")


async def test_a_record_of_an_unknown_version_is_refused_and_an_old_one_is_read() -> None:
    script = Script({"a": [0.1, ConnectionError("gone")], "b": [0.1, 0.2], "c": [0.3, 0.4]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c", max_rounds=2), caller=script)
    written = json.loads(result.model_dump_json())
    for version in (0, 99, -1):
        with pytest.raises(ValueError, match=f"version {version} is unknown"):
            FireCircleResult.model_validate_json(json.dumps({**written, "schema_version": version}))
    old = {**written, "schema_version": 1}
    old["dialogue_history"] = [
        {name: value for name, value in held.items() if name != "asked_models"}
        | {"active_models": held["asked_models"]}
        for held in written["dialogue_history"]
    ]
    assert FireCircleResult.model_validate_json(json.dumps(old)) == result


async def test_a_record_from_before_patterns_knew_who_withdrew_is_read() -> None:
    seen = says(0.8, patterns_observed=[pattern("false_authority")])
    script = Script({"a": [0.1, seen], "b": [0.1, seen]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", max_rounds=2), caller=script)
    old = json.loads(result.model_dump_json())
    for name in ("single_voice_patterns", "reason"):
        del old[name]
    for name in ("independent_observers", "held_to_the_end", "same_words", "left_out"):
        del old["patterns"][0][name]
    read = FireCircleResult.model_validate_json(json.dumps(old))
    assert read.patterns[0].held_to_the_end == ("a", "b")
    assert reaggregate(read) == result
