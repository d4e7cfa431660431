"""A budget is checked before anybody is asked, and ends a circle as a whole."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firecircle import (
    BudgetError,
    ConfigError,
    EvaluationConfig,
    EvaluationError,
    FireCircleConfig,
    FireCircleResult,
    MultiNeutrosophicPrompt,
    PromptGuard,
    Reply,
    Turn,
    Usage,
    fire_circle_evaluate,
    replay_circle,
)
from firecircle.circle.dialogue import Dialogue
from firecircle.voices.hosted.providers import PROVIDERS
from firecircle.voices.hosted.voice import HostedVoice
from tests.loopback import Answer, ChatRequest, LoopbackServer, completion
from tests.scripted import PROMPT, Script, circle, says

CONTRADICTION = json.dumps(
    {"truth": 0.9, "indeterminacy": 0.0, "falsehood": 0.1, "verdict": "violation", "reasoning": "mixed up"}
)


class Metered:
    """Consumes and expects fixed amounts; says the lines one after another, the last for good."""

    def __init__(self, *lines: str, tokens: int = 0, cost: float = 0.0, expects: Usage | None = None) -> None:
        self.lines = list(lines or [says(0.4)])
        self.usage = Usage(tokens, None, 0, cost)
        self.expects = expects or self.usage
        self.asked = 0

    def estimate(self, turn: Turn) -> Usage:
        return self.expects

    async def speak(self, turn: Turn) -> Reply:
        self.asked += 1
        return Reply(self.lines.pop(0) if len(self.lines) > 1 else self.lines[0], usage=self.usage)


async def over_budget(config: FireCircleConfig, voices: dict[str, Any]) -> FireCircleResult:
    with pytest.raises(BudgetError, match="over_budget") as caught:
        await Dialogue(PROMPT, config, voices).run()
    partial = caught.value.partial_result
    assert partial is not None
    assert partial.stopped == "over_budget"
    assert partial.consensus is None
    assert partial.failures == ()
    return partial


@pytest.mark.parametrize(
    ("limit", "voice", "spent"),
    [
        ({"budget_tokens": 350}, {"tokens": 100}, "200 of 350 tokens are spent"),
        ({"budget_usd": 0.35}, {"cost": 0.1}, r"\$0\.2000 of \$0\.3500 are spent"),
    ],
)
async def test_a_round_that_does_not_fit_is_not_begun(
    limit: dict[str, Any], voice: dict[str, Any], spent: str
) -> None:
    voices = {name: Metered(**voice) for name in "ab"}
    partial = await over_budget(circle("a", "b", **limit), voices)
    assert [one.asked for one in voices.values()] == [1, 1]
    assert len(partial.dialogue_history) == 1
    assert partial.abort_reason is not None
    assert "what is left is not enough for round 2" in partial.abort_reason
    assert re.search(spent, partial.abort_reason)


async def test_a_budget_that_is_too_small_from_the_start_costs_nothing() -> None:
    voices = {name: Metered(tokens=100) for name in "ab"}
    partial = await over_budget(circle("a", "b", budget_tokens=199), voices)
    assert [one.asked for one in voices.values()] == [0, 0]
    assert partial.calls == ()


async def test_a_budget_that_fits_exactly_is_enough() -> None:
    voices = {name: Metered(tokens=100) for name in "ab"}
    result = await Dialogue(PROMPT, circle("a", "b", budget_tokens=600), voices).run()
    assert len(result.dialogue_history) == 3


async def test_a_voice_that_expects_nothing_is_stopped_when_all_is_spent() -> None:
    voices = {name: Metered(tokens=100, expects=Usage()) for name in "ab"}
    partial = await over_budget(circle("a", "b", budget_tokens=200), voices)
    assert len(partial.dialogue_history) == 1


@pytest.mark.parametrize(("budget", "clarified"), [(300, True), (299, False)])
async def test_a_further_question_must_fit_beside_the_answers_under_way(budget: int, clarified: bool) -> None:
    voices = {"a": Metered(CONTRADICTION, says(0.8), tokens=100), "b": Metered(tokens=100)}
    config = circle("a", "b", budget_tokens=budget, max_rounds=1)
    result = await Dialogue(PROMPT, config, voices).run()
    (said, _) = result.dialogue_history[0].evaluations
    assert said.polarity == ("clarified" if clarified else "corrected")
    assert voices["a"].asked == 1 + clarified


async def test_a_reserve_that_does_not_fit_is_not_called() -> None:
    class Broken(Metered):
        async def speak(self, turn: Turn) -> Reply:
            raise RuntimeError("gone")

    voices = {"a": Metered(tokens=100), "b": Broken(tokens=100), "r": Metered(tokens=500)}
    config = circle("a", "b", reserves=("r",), budget_tokens=400)
    with pytest.raises(BudgetError) as caught:
        await Dialogue(PROMPT, config, voices).run()
    partial = caught.value.partial_result
    assert partial is not None
    assert voices["r"].asked == 0
    assert partial.dialogue_history[0].asked_models == ("a", "b")


async def test_a_classifier_that_does_not_fit_is_replaced_by_the_heuristic() -> None:
    note = says(0.8, patterns_observed=[{"description": "somebody claims a rank", "quote": "As we agreed"}])
    voices = {"a": Metered(note, tokens=100), "b": Metered(note, tokens=100), "c": Metered("{}", tokens=500)}
    config = circle(
        "a", "b", max_rounds=2, budget_tokens=600, pattern_classification="llm", classifier_model="c"
    )
    result = await Dialogue(PROMPT, config, voices).run()
    assert voices["c"].asked == 0
    assert result.advisories == ("classifier c was not asked (over_budget); the heuristic stood in",)
    assert result.consensus is not None


async def test_a_circle_that_ran_out_of_budget_is_replayed_to_the_same_end() -> None:
    voices = {"a": Metered(CONTRADICTION, tokens=100), "b": Metered(tokens=100)}
    partial = await over_budget(circle("a", "b", budget_tokens=499, seed=1), voices)
    assert [call.purpose for call in partial.calls] == ["answer", "clarify", "answer"]
    with pytest.raises(BudgetError) as caught:
        await replay_circle(partial)
    assert caught.value.partial_result is not None
    assert caught.value.partial_result.without_times() == partial.without_times()


async def test_a_question_that_was_not_asked_for_want_of_budget_is_not_asked_in_a_replay() -> None:
    class Wary(Metered):
        def estimate(self, turn: Turn) -> Usage:
            return Usage(1000 if len(turn.messages) > 2 else 100)

    voices = {"a": Wary(CONTRADICTION, tokens=100), "b": Metered(tokens=100)}
    config = circle("a", "b", budget_tokens=600, max_rounds=2, seed=1)
    result = await Dialogue(PROMPT, config, voices).run()
    assert [call.purpose for call in result.calls].count("clarify") == 0
    assert (await replay_circle(result)).without_times() == result.without_times()


# -- with hosted voices --------------------------------------------------------------------------------


def hosted(monkeypatch: pytest.MonkeyPatch, server: LoopbackServer) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")
    monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)


async def whatever_was_heard(config: FireCircleConfig) -> FireCircleResult:
    try:
        return await fire_circle_evaluate(PROMPT, config)
    except BudgetError as over:
        if over.partial_result is None:
            raise
        return over.partial_result


async def test_hosted_voices_never_overshoot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the endpoint says it counted, as long as answers keep to `max_tokens`."""

    def counting(request: ChatRequest) -> Answer:
        sent = sum(len(message["content"]) for message in request.body["messages"])
        return completion(usage={"prompt_tokens": sent // 4, "completion_tokens": 200})

    models = ("anthropic/claude-sonnet-4", "deepseek/deepseek-r1", "qwen/qwen-2.5-72b-instruct")
    for budget in (0.004, 0.02, 0.03, 0.05):
        config = FireCircleConfig(models=models, budget_usd=budget, max_tokens=200, early_stop_convergence=0)
        async with LoopbackServer(counting) as server:
            hosted(monkeypatch, server)
            result = await whatever_was_heard(config)
        assert (result.accounting.total.cost_usd or 0.0) <= budget
        assert result.accounting.total.calls_without_price == 0


class BilledAtOnce:
    """A server that counts every question it gets as paid, however the answer ends."""

    def __init__(self, seed: int, price_in: float, price_out: float) -> None:
        self.random = random.Random(seed)
        self.prices = price_in, price_out
        self.billed = 0.0

    def __call__(self, request: ChatRequest) -> Answer:
        sent = sum(len(message["content"].encode()) for message in request.body["messages"]) // 4
        written = self.random.randint(50, request.body["max_tokens"])
        self.billed += (sent * self.prices[0] + written * self.prices[1]) / 1_000_000
        counted = completion(usage={"prompt_tokens": sent, "completion_tokens": written})
        return self.random.choice(
            (
                counted,
                counted,
                completion(),
                replace(counted, delivery="half"),
                replace(counted, latency=5),
                Answer(delivery="reset"),
                completion("", finish_reason="error"),
            )
        )


async def test_what_nobody_counts_does_not_overshoot_either(
    monkeypatch: pytest.MonkeyPatch, settings_file: Callable[[str], Path]
) -> None:
    """Sixty circles at once, each with its own budget, of which the endpoint bills more than it tells."""
    models = ("lab:a", "lab:b", "lab:c")
    monkeypatch.setenv("LAB_KEY", "sk-test")

    async def circle_against(seed: int) -> tuple[float, float, FireCircleResult]:
        endpoint, budget = BilledAtOnce(seed, 3.0, 15.0), 0.03 + 0.005 * (seed % 12)
        config = FireCircleConfig(
            models=models,
            budget_usd=budget,
            max_tokens=200,
            timeout_seconds=0.4,
            timeout_per_round=3.0,
            enforce_quorum=False,
            early_stop_convergence=0,
        )
        provider = PROVIDERS["openrouter"]
        async with LoopbackServer(endpoint) as server:
            voices = {model: HostedVoice(model, provider.at(server.base_url), model) for model in models}
            try:
                result = await Dialogue(PROMPT, config, voices).run()
            except EvaluationError as over:
                result = over.partial_result or pytest.fail("nothing is left of the circle")
        return endpoint.billed, budget, result

    settings_file("".join(f'[prices."{model}"]\ninput = 3.0\noutput = 15.0\n' for model in models))
    ended = await asyncio.gather(*map(circle_against, range(60)))
    for billed, budget, result in ended:
        total = result.accounting.total
        assert billed <= budget
        assert billed <= (total.cost_usd or 0.0) + total.estimated_usd + 1e-9
    assert any(result.accounting.total.estimated_usd for _, _, result in ended)


async def test_money_is_limited_but_a_price_unknown(
    monkeypatch: pytest.MonkeyPatch, settings_file: Callable[[str], Path]
) -> None:
    config = FireCircleConfig(models=("nobody/nothing", "vllm:b"), enforce_quorum=False, budget_usd=1.0)
    async with LoopbackServer(
        lambda _: completion(usage={"prompt_tokens": 9, "completion_tokens": 9})
    ) as server:
        hosted(monkeypatch, server)
        monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", server.base_url)
        with pytest.raises(ConfigError, match=r"price of 'nobody/nothing' is unknown.*\[prices\."):
            await fire_circle_evaluate(PROMPT, config)
        assert server.requests == []
        settings_file("[prices.'nobody/nothing']\ninput = 1\noutput = 1")
        result = await fire_circle_evaluate(PROMPT, config)
    assert result.accounting.by_voice["nobody/nothing"].cost_usd == pytest.approx(2 * 18e-6)


async def test_a_function_of_one_s_own_has_no_price() -> None:
    with pytest.raises(ConfigError, match="reports no price"):
        await fire_circle_evaluate(PROMPT, circle("a", "b", budget_usd=1), caller=Script({}))


@pytest.mark.parametrize("mode", ["single", "parallel"])
async def test_the_other_modes_keep_to_a_budget_too(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer(
        lambda _: completion(CONTRADICTION, usage={"prompt_tokens": 900, "completion_tokens": 50})
    ) as server:
        monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", server.base_url)
        for budget, calls in ((100, 0), (7000, None)):
            config = EvaluationConfig(mode=mode, models=("vllm:a", "vllm:b"), budget_tokens=budget)
            guard = PromptGuard(config)
            if calls == 0:
                with pytest.raises(BudgetError, match="not enough to ask"):
                    await guard.evaluate_prompt(MultiNeutrosophicPrompt(user="hello"))
                assert server.requests == []
            else:
                metrics = await guard.evaluate_prompt(MultiNeutrosophicPrompt(user="hello"))
                total = metrics.accounting.total
                assert total.calls == len(server.requests)
                assert total.tokens_in + total.tokens_out <= budget
                assert total.cost_usd == 0.0
