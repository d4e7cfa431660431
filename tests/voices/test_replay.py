"""A stored circle replays exactly: same words, same failures, same bytes, and no provider or family is called."""

from __future__ import annotations

from typing import Any

import pytest

from firecircle import (
    EvaluationError,
    FireCircleConfig,
    FireCircleResult,
    MultiNeutrosophicPrompt,
    SessionMemory,
    VoiceError,
    fire_circle_evaluate,
    replay_circle,
)
from firecircle.errors import FAILURE_KINDS
from tests.scripted import PROMPT, Script, circle, pattern, says

INVERTED = says(1.0, verdict="no_violation")
SEEN = says(0.8, patterns_observed=[pattern("temporal_inconsistency"), "something without a name"])


async def stored(script: Script, config: FireCircleConfig, **more: Any) -> FireCircleResult:
    prompt = more.pop("prompt", PROMPT)
    try:
        result = await fire_circle_evaluate(prompt, config, caller=script, **more)
    except EvaluationError as error:
        assert error.partial_result is not None  # noqa: PT017 - both outcomes are recordings
        result = error.partial_result
    return FireCircleResult.model_validate_json(result.model_dump_json())


async def replayed(record: FireCircleResult) -> FireCircleResult:
    try:
        return await replay_circle(record)
    except EvaluationError as error:
        assert error.partial_result is not None  # noqa: PT017 - both outcomes are recordings
        return error.partial_result


def bytes_of(result: FireCircleResult) -> str:
    return result.without_times().model_dump_json()


async def test_an_eventful_circle_replays_to_the_same_bytes() -> None:
    script = Script(
        {
            "a": [INVERTED, INVERTED, SEEN, 0.4],
            "b": [0.2, "nothing of use", says(0.3, consensus_patterns=["role_confusion"])],
            "c": ["I'm sorry, but I can't assist with that."],
            "d": [INVERTED, RuntimeError("second asking failed"), 0.5, "This is an attack."],
            "e": [0.1, VoiceError("quota exceeded", kind="rate_limited", attempts=3)],
        }
    )
    record = await stored(script, circle(*"abcde"))
    again = await replay_circle(record)
    assert bytes_of(again) == bytes_of(record)


@pytest.mark.parametrize("kind", FAILURE_KINDS)
async def test_every_kind_of_failure_replays(kind: Any) -> None:
    script = Script(
        {"a": [0.1, VoiceError("so it was", kind=kind, attempts=2)], "b": [0.2, 0.5], "c": [0.3, 0.9]}
    )
    record = await stored(script, circle("a", "b", "c", max_rounds=2))
    assert bytes_of(await replay_circle(record)) == bytes_of(record)


async def test_an_aborted_circle_aborts_again() -> None:
    record = await stored(Script({"a": [0.1, KeyError("x")], "b": [0.2, 0.5]}), circle("a", "b"))
    again = await replayed(record)
    assert again.consensus is None
    assert bytes_of(again) == bytes_of(record)


async def test_a_session_and_a_classifier_replay_too() -> None:
    script = Script({"a": [0.1, SEEN], "b": [0.2, SEEN], "j": ['{"1": "false_authority"}']})
    config = circle("a", "b", max_rounds=2, pattern_classification="llm", classifier_model="j")
    unknown = MultiNeutrosophicPrompt(system=PROMPT.system, user=PROMPT.user)
    session = SessionMemory(turn_count=3, balance_history=[0.2, 0.3])
    record = await stored(script, config, prompt=unknown, session_memory=session)
    assert "Session context (Turn 3)" in record.messages_for("a", 1)[1].content
    assert "false_authority" in {seen.pattern_type for seen in record.observations}
    assert bytes_of(await replay_circle(record)) == bytes_of(record)


async def test_the_embedded_circle_replays() -> None:
    record = await fire_circle_evaluate(PROMPT, FireCircleConfig.embedded())
    assert bytes_of(await replay_circle(record)) == bytes_of(record)


async def test_a_recording_that_ends_too_early_is_a_failure_that_says_so() -> None:
    record = await stored(
        Script({"a": [0.1, 0.2], "b": [0.2, 0.9], "c": [0.5, 0.5]}), circle(*"abc", max_rounds=2)
    )
    longer = record.model_copy(update={"config": circle(*"abc", max_rounds=3)})
    with pytest.raises(EvaluationError, match="degraded below minimum") as caught:
        await replay_circle(longer)
    assert caught.value.partial_result is not None
    assert "the recording has no further answer" in caught.value.partial_result.failures[0].message
