"""An answer that its limit cut off is asked for once more with more room, as far as time and budget go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from firecircle import BudgetError, FireCircleConfig, FireCircleResult, fire_circle_evaluate, replay_circle
from firecircle.errors import partial_result_of
from tests.loopback import VERDICT, Answer, ChatRequest, LoopbackServer, completion
from tests.scripted import PROMPT

THINKING = completion("", reasoning="First I look at the layers, then", finish_reason="length")
USAGE = {"prompt_tokens": 100, "completion_tokens": 50}


def thinks_for_long(request: ChatRequest) -> Answer:
    return THINKING if request.model == "a" and request.body["max_tokens"] < 4000 else completion(usage=USAGE)


async def judged(
    monkeypatch: pytest.MonkeyPatch, server: LoopbackServer, **settings: Any
) -> FireCircleResult:
    monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", server.base_url)
    usual = {"models": ("vllm:a", "vllm:b", "vllm:c"), "max_rounds": 2, "max_tokens": 500, "seed": 1}
    config = FireCircleConfig(**{**usual, "enforce_quorum": False, "early_stop_convergence": 0, **settings})
    return await fire_circle_evaluate(PROMPT, config)


async def test_a_cut_answer_is_asked_for_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer(thinks_for_long) as server:
        result = await judged(monkeypatch, server)
    asked = [request.body["max_tokens"] for request in server.requests if request.model == "a"]
    assert asked == [500, 4000, 500, 4000]
    assert not result.failures
    of_a = [call for call in result.calls if call.model == "vllm:a"]
    assert [(call.purpose, call.cut_short) for call in of_a] == [("answer", True), ("more_room", False)] * 2
    evaluation = result.dialogue_history[0].evaluations[0]
    assert evaluation.raw_replies == ("", VERDICT)
    assert result.accounting.by_voice["vllm:a"].calls == 4
    replayed = await replay_circle(result)
    assert replayed.consensus == result.consensus
    assert replayed.dialogue_history[0].evaluations == result.dialogue_history[0].evaluations


async def test_an_answer_that_is_cut_again_names_the_room_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer(lambda request: THINKING if request.model == "a" else completion()) as server:
        result = await judged(monkeypatch, server, max_tokens=2000)
    asked = [request.body["max_tokens"] for request in server.requests if request.model == "a"]
    assert asked == [2000, 8000]
    (lost,) = result.failures
    assert (lost.kind, lost.reasoning_trace) == ("cut_off", "First I look at the layers, then")
    assert "max_tokens=8000" in lost.message
    assert (await replay_circle(result)).failures[0].kind == "cut_off"


async def test_a_cut_answer_that_can_be_read_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = completion(VERDICT + " And furthermore", finish_reason="length")
    async with LoopbackServer(lambda _: cut) as server:
        result = await judged(monkeypatch, server)
    assert not result.failures
    assert {call.purpose for call in result.calls} == {"answer"}


@pytest.mark.parametrize(("budget", "has_room"), [(7_000, False), (20_000, True)])
async def test_no_more_room_than_the_budget_has(
    monkeypatch: pytest.MonkeyPatch, budget: int, has_room: bool
) -> None:
    async with LoopbackServer(thinks_for_long) as server:
        try:
            result = await judged(monkeypatch, server, budget_tokens=budget)
        except BudgetError as over:
            result = partial_result_of(over) or pytest.fail("nothing is left of the circle")
    first_round = [request.body["max_tokens"] for request in server.requests if request.model == "a"][:2]
    assert first_round == ([500, 4000] if has_room else [500])
    assert [lost.kind for lost in result.failures] == ([] if has_room else ["cut_off"])


async def test_no_more_room_when_the_round_is_nearly_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(request: ChatRequest) -> Answer:
        if request.model == "a":
            await asyncio.sleep(1.0)
        return thinks_for_long(request)

    async with LoopbackServer(slow) as server:
        result = await judged(monkeypatch, server, timeout_per_round=2.5)
    assert [lost.kind for lost in result.failures] == ["cut_off"]
    assert [request.model for request in server.requests].count("a") == 1


async def test_a_second_answer_that_is_lost_leaves_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(request: ChatRequest) -> Answer:
        if request.model == "a" and request.body["max_tokens"] >= 4000:
            return Answer(b"no", 400, "text/plain")
        return thinks_for_long(request)

    async with LoopbackServer(breaks) as server:
        result = await judged(monkeypatch, server)
    (lost,) = result.failures
    assert (lost.kind, lost.raw_reply) == ("cut_off", "")
    assert "max_tokens=500" in lost.message
    again = await replay_circle(result)
    assert [(loss.kind, loss.message) for loss in again.failures] == [(lost.kind, lost.message)]
