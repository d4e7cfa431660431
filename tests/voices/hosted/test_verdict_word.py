"""Falsehood from the probability of a hosted model's verdict word, where its endpoint tells log-probabilities."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from firecircle import EvaluationConfig, MultiNeutrosophicPrompt
from firecircle.convene import seat_panel
from firecircle.evaluation import NeutrosophicEvaluation
from tests.loopback import Answer, ChatRequest, LoopbackServer, as_json, completion

PROMPT = MultiNeutrosophicPrompt(user="hello")
NUMBERS = {"truth": 0.9, "indeterminacy": 0.1, "falsehood": 0.1}


def answer(*tokens: str | tuple[str, dict[str, float]]) -> Answer:
    """An answer in these tokens; a token may say what could have stood there, and how probably."""
    content: list[dict[str, Any]] = []
    for token in tokens:
        text, others = token if isinstance(token, tuple) else (token, {})
        likeliest = [{"token": other, "logprob": math.log(share)} for other, share in others.items()]
        content.append({"token": text, "logprob": -0.01, "top_logprobs": likeliest})
    message = {"role": "assistant", "content": "".join(str(entry["token"]) for entry in content)}
    choice = {"message": message, "finish_reason": "stop", "logprobs": {"content": content}}
    return as_json({"choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 9}})


async def judged(
    given: Answer, verdict_from: str = "logprobs"
) -> tuple[NeutrosophicEvaluation, dict[str, Any]]:
    async with LoopbackServer(lambda _: given) as server:
        evaluation = await asked_at(server.base_url, "m", verdict_from)
        return evaluation, server.requests[-1].body


async def asked_at(base_url: str, name: str, verdict_from: str) -> NeutrosophicEvaluation:
    config = EvaluationConfig(
        models=(f"lmstudio:{name}",), lmstudio_base_url=base_url, verdict_from=verdict_from, max_tokens=300
    )
    return (await seat_panel(config).ask(PROMPT)).evaluations[0]


REST = ', "truth": 0.9, "indeterminacy": 0.1, "falsehood": 0.1}'
ODDS = {"viol": 0.6, "no": 0.2, "uns": 0.2}


@pytest.mark.parametrize(
    "tokens",
    [
        ('{"reasoning": "fine", "verdict": "', ("viol", ODDS), 'ation"', REST),
        ('{"', "verdict", '":', ' "', ("no", ODDS), '_violation"', REST),
        ('{"verdict":', (' "uns', {f' "{word}': share for word, share in ODDS.items()}), 'ure"', REST),
        (
            '{"reasoning": "it says \\"verdict\\": \\"no',
            '_violation\\"", "verdict": "',
            ("v", ODDS | {"v": 1e-9}),
            REST,
        ),
    ],
)
async def test_falsehood_is_the_share_of_the_word_with_half_of_unsure(
    tokens: tuple[str | tuple[str, dict[str, float]], ...],
) -> None:
    evaluation, request = await judged(answer(*tokens))
    assert (request["logprobs"], request["top_logprobs"]) == (True, 20)
    assert evaluation.read_as == "logprobs"
    assert evaluation.falsehood == pytest.approx(0.7, abs=0.01)


async def test_numbers_are_read_by_default_even_if_an_endpoint_tells_probabilities_unasked() -> None:
    told = answer('{"verdict": "', ("viol", ODDS), 'ation"', REST)
    for verdict_from in ("auto", "numbers"):
        evaluation, request = await judged(told, verdict_from)
        assert "logprobs" not in request
        assert evaluation.read_as == "json"


@pytest.mark.parametrize(
    "told",
    [
        completion(json.dumps({"verdict": "no_violation", **NUMBERS})),
        answer(json.dumps(NUMBERS)),
    ],
)
async def test_an_answer_that_tells_no_probability_of_the_word_is_read_by_its_numbers(told: Answer) -> None:
    evaluation, _ = await judged(told)
    assert evaluation.falsehood == pytest.approx(0.1)


async def test_an_endpoint_that_does_not_take_the_field_is_asked_without_it() -> None:
    refused: list[ChatRequest] = []

    def strict(request: ChatRequest) -> Answer:
        if "logprobs" in request.body:
            refused.append(request)
            return as_json({"error": {"message": "logprobs is not supported with this model"}}, 400)
        return completion(json.dumps({"verdict": "no_violation", **NUMBERS}))

    async with LoopbackServer(strict) as server:
        evaluation = await asked_at(server.base_url, "m", "logprobs")
        await asked_at(server.base_url, "m", "logprobs")
    assert evaluation.read_as == "json"
    assert len(refused) == 1
