"""The ways of endpoints, in bodies and servers of our own: what they send, take, turn down and ask to wait for."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from firecircle import FireCircleConfig, VoiceError
from firecircle.circle.questions import reply_schema
from firecircle.circle.voice import Retry, Usage
from firecircle.voices.hosted.chat import strict_schema
from firecircle.voices.hosted.providers import PROVIDERS
from firecircle.voices.hosted.voice import HostedVoice
from firecircle.voices.hosted.waits import seconds_in, stated_wait
from tests.loopback import Answer, ChatRequest, LoopbackServer, as_json, completion, failure
from tests.voices.hosted.test_hosted import QUICK, TURN, lost, one_after_another, voice_at

FULL_TURN = TURN._replace(reply_schema=reply_schema("discussion"), seed=3, temperature=0.7, max_tokens=900)


def complaint(message: str, status: int = 400, **more: Any) -> Answer:
    return as_json({"error": {"message": message, **more}}, status)


# -- what is sent --------------------------------------------------------------------------------------


async def test_what_is_none_is_not_sent() -> None:
    async with LoopbackServer(lambda _: completion("hi")) as server:
        await voice_at(server).speak(TURN._replace(temperature=None, seed=None))
    assert set(server.requests[0].body) == {"model", "messages", "max_tokens"}
    assert FireCircleConfig.embedded(temperature=None, seed=None).temperature is None


def keywords(schema: dict[str, Any]) -> set[str]:
    found = set(schema)
    for inner in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        found |= keywords(inner)
    return found


@pytest.mark.parametrize("kind", ["baseline", "discussion", "synthesis"])
@pytest.mark.parametrize("is_chair", [False, True])
def test_our_schemas_stay_within_what_strict_endpoints_take(kind: Any, is_chair: bool) -> None:
    schema = strict_schema(reply_schema(kind, is_chair=is_chair))
    taken = {"type", "properties", "required", "additionalProperties", "items", "enum", "description"}
    assert keywords(schema) <= taken
    assert schema["required"] == list(schema["properties"])
    assert schema["additionalProperties"] is False
    assert schema["properties"]["falsehood"] == {"type": "number", "description": "from 0 to 1"}


def test_ranges_and_patterns_are_said_in_words() -> None:
    schema = {
        "type": "object",
        "properties": {
            "minimum": {"type": "integer", "minimum": 3, "description": "a count"},
            "name": {"type": "string", "pattern": "^a", "maxLength": 9},
            "list": {"type": "array", "items": {"type": "number", "maximum": 1}, "uniqueItems": True},
            "either": {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "null"}]},
        },
    }
    strict = strict_schema(schema)
    assert strict["properties"] == {
        "minimum": {"type": "integer", "description": "a count (at least 3)"},
        "name": {"type": "string", "description": "matching ^a; at most 9 characters"},
        "list": {"type": "array", "items": {"type": "number", "description": "at most 1"}},
        "either": {"anyOf": [{"type": "number", "description": "from 0 to 1"}, {"type": "null"}]},
    }
    assert strict["required"] == ["minimum", "name", "list", "either"]


# -- endpoints with rules of their own -------------------------------------------------------------------


def unsupported(field: str) -> Answer:
    message = f"Unsupported parameter: '{field}' is not supported with this model."
    return complaint(message, type="invalid_request_error", param=field, code="unsupported_parameter")


def passed_on(inner: Any) -> Answer:
    metadata = {"provider_name": "X", "raw": inner if isinstance(inner, str) else json.dumps(inner)}
    return complaint("Provider returned error", code=400, metadata=metadata)


def google(message: str) -> Answer:
    violation = {
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        "fieldViolations": [{"description": message}],
    }
    error = {"code": 400, "message": message, "status": "INVALID_ARGUMENT", "details": [violation]}
    return as_json([{"error": error}], 400)


def pydantic_s(place: str, message: str) -> Answer:
    return as_json({"detail": [{"type": "extra_forbidden", "loc": ["body", place], "msg": message}]}, 422)


Rule = Callable[[dict[str, Any]], Answer | None]
NAMES = 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'
RULES: dict[str, tuple[Rule, dict[str, Any]]] = {
    "no temperature": (
        lambda sent: unsupported("temperature") if "temperature" in sent else None,
        {"temperature": None},
    ),
    "temperature deprecated": (
        lambda sent: (
            complaint("temperature is deprecated for this model.") if "temperature" in sent else None
        ),
        {"temperature": None},
    ),
    "only one temperature": (
        lambda sent: (
            complaint("invalid temperature: only 1 is allowed for this model")
            if sent.get("temperature", 1) != 1
            else None
        ),
        {"temperature": 1},
    ),
    "only the default": (
        lambda sent: (
            complaint(
                "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value"
                " is supported.",
                param="temperature",
                code="unsupported_value",
            )
            if sent.get("temperature", 1) != 1
            else None
        ),
        {"temperature": 1},
    ),
    "a range of temperatures": (
        lambda sent: complaint("`temperature` must be between 0 and 0.5") if "temperature" in sent else None,
        {"temperature": None},
    ),
    "no temperature, behind a router": (
        lambda sent: (
            passed_on({"error": {"message": "Unsupported: 'temperature'.", "param": "temperature"}})
            if "temperature" in sent
            else None
        ),
        {"temperature": None},
    ),
    "no seed, Google's": (lambda sent: google(NAMES) if "seed" in sent else None, {"seed": None}),
    "no seed, behind a router": (lambda sent: passed_on(NAMES) if "seed" in sent else None, {"seed": None}),
    "no seed, pydantic's": (
        lambda sent: pydantic_s("seed", "Extra inputs are not permitted") if "seed" in sent else None,
        {"seed": None},
    ),
    "no seed, xAI's": (
        lambda sent: (
            as_json(
                {"code": "Client specified an invalid argument", "error": "Argument not supported: seed"}, 400
            )
            if "seed" in sent
            else None
        ),
        {"seed": None},
    ),
    "neither temperature nor seed, Google's": (
        lambda sent: (
            google(NAMES + "\\n" + NAMES.replace("seed", "temperature"))
            if {"temperature", "seed"} & set(sent)
            else None
        ),
        {"seed": None, "temperature": None},
    ),
    "neither temperature nor seed, pydantic's": (
        lambda sent: (
            as_json(
                {"detail": [{"loc": ["body", field], "msg": "Extra"} for field in ("temperature", "seed")]},
                422,
            )
            if {"temperature", "seed"} & set(sent)
            else None
        ),
        {"seed": None, "temperature": None},
    ),
    "neither temperature nor seed": (
        lambda sent: (
            complaint("temperature and seed are not supported with this model")
            if {"temperature", "seed"} & set(sent)
            else None
        ),
        {"seed": None, "temperature": None},
    ),
    "the limit by its new name": (
        lambda sent: (
            complaint(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
                " instead.",
                param="max_tokens",
                code="unsupported_parameter",
            )
            if "max_tokens" in sent
            else None
        ),
        {"max_tokens": None, "max_completion_tokens": 900},
    ),
    "a lower limit": (
        lambda sent: (
            complaint(
                "max_tokens is too large: 900. This model supports at most 512 completion tokens.",
                param="max_tokens",
            )
            if sent["max_tokens"] > 512
            else None
        ),
        {"max_tokens": 512},
    ),
    "a lower limit, as a range": (
        lambda sent: (
            complaint("Invalid max_tokens value, the valid range of max_tokens is [1, 600]")
            if sent["max_tokens"] > 600
            else None
        ),
        {"max_tokens": 600},
    ),
    "a lower limit, Google's": (
        lambda sent: (
            google(
                "Unable to submit request because it has a maxOutputTokens value of 900 but the supported range"
                " is from 1 (inclusive) to 601 (exclusive)."
            )
            if sent["max_tokens"] > 600
            else None
        ),
        {"max_tokens": 600},
    ),
    "no seed, Mistral's": (
        lambda sent: (
            as_json(
                {"object": "error", "message": {"detail": [{"loc": ["body", "seed"], "msg": "Extra"}]}}, 422
            )
            if "seed" in sent
            else None
        ),
        {"seed": None},
    ),
    "no schema, by its plain name": (
        lambda sent: (
            complaint("This model does not support response format `json_schema`. See the list of models.")
            if "response_format" in sent
            else None
        ),
        {"response_format": None},
    ),
    "no schema": (
        lambda sent: (
            complaint("This response_format type is unavailable now") if "response_format" in sent else None
        ),
        {"response_format": None},
    ),
    "a schema it cannot serve": (
        lambda sent: (
            google("The specified schema produces a constraint that has too many states for serving.")
            if "response_format" in sent
            else None
        ),
        {"response_format": None},
    ),
    "an error that is passed on without its words": (
        lambda sent: complaint("Upstream error: 400") if "response_format" in sent else None,
        {"response_format": None},
    ),
    "an error that says nothing": (
        lambda sent: google("Request contains an invalid argument.") if "response_format" in sent else None,
        {"response_format": None},
    ),
}
USUAL = ("max_tokens", "temperature", "seed", "response_format")


@pytest.mark.parametrize("name", RULES)
async def test_a_rule_costs_one_more_call_and_is_remembered(name: str) -> None:
    rule, changed = RULES[name]
    retries: list[Retry] = []
    async with LoopbackServer(lambda request: rule(request.body) or completion("hi")) as server:
        voice = voice_at(server)
        first = await voice.speak(FULL_TURN._replace(on_retry=retries.append))
        again = await voice_at(server).speak(FULL_TURN)
    assert (first.attempts, again.attempts) == (2, 1)
    assert [retry.wait_seconds for retry in retries] == [0.0]
    refused, accepted, remembered = (request.body for request in server.requests)
    assert accepted == remembered
    for field in {*USUAL, *changed}:
        assert accepted.get(field) == changed.get(field, refused.get(field)), field
    assert voice.quirks.in_words()


async def test_rules_are_remembered_beyond_the_event_loop() -> None:
    rule, _ = RULES["no temperature"]

    async with LoopbackServer(lambda request: rule(request.body) or completion("hi")) as server:
        address = server.base_url

        def elsewhere() -> int:
            async def ask() -> int:
                return (
                    await HostedVoice("vllm:m", PROVIDERS["vllm"].at(address), "m").speak(FULL_TURN)
                ).attempts

            return asyncio.run(ask())

        assert [await asyncio.to_thread(elsewhere) for _ in range(2)] == [2, 1]


async def test_each_rule_costs_a_call_of_its_own() -> None:
    def reasoner(request: ChatRequest) -> Answer:
        for name in ("the limit by its new name", "no temperature", "no seed, Google's"):
            if turned_down := RULES[name][0](request.body):
                return turned_down
        return completion("hi")

    async with LoopbackServer(reasoner) as server:
        assert (await voice_at(server).speak(FULL_TURN)).attempts == 4
        assert (await voice_at(server).speak(FULL_TURN)).attempts == 1
    assert "response_format" in server.requests[-1].body


@pytest.mark.parametrize(
    ("answer", "schema_without"),
    [
        (
            google("Unknown name \"additionalProperties\" at 'generation_config.response_schema'"),
            "additionalProperties",
        ),
        (complaint("Unknown field", param="response_format.json_schema.strict"), "strict"),
        (complaint("`strict: true` is not supported for this model"), "strict"),
    ],
)
async def test_a_schema_loses_only_the_keyword_that_is_named(answer: Answer, schema_without: str) -> None:
    def picky(request: ChatRequest) -> Answer:
        return answer if schema_without in json.dumps(request.body["response_format"]) else completion("hi")

    async with LoopbackServer(picky) as server:
        assert (await voice_at(server).speak(FULL_TURN)).attempts == 2
    sent = server.requests[-1].body["response_format"]["json_schema"]["schema"]
    assert list(sent["properties"]) == list(strict_schema(reply_schema("discussion"))["properties"])


async def test_a_model_without_a_system_role_gets_it_with_the_question() -> None:
    def old(request: ChatRequest) -> Answer:
        roles = [message["role"] for message in request.body["messages"]]
        error = "Unsupported value: 'messages[0].role' does not support 'system' with this model."
        return complaint(error, param="messages[0].role") if "system" in roles else completion("hi")

    async with LoopbackServer(old) as server:
        assert (await voice_at(server).speak(FULL_TURN)).attempts == 2
    assert server.requests[-1].body["messages"] == [
        {"role": "user", "content": "You evaluate.\n\nÉvidence ✓"}
    ]


@pytest.mark.parametrize(
    "message",
    [
        "'max_tokens' or 'max_completion_tokens' is too large: 900. This model's maximum context length is 4096"
        " tokens and your request has 3600 input tokens (900 > 4096 - 3600).",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3600 `inputs` tokens and 900 `max_new_tokens`",
    ],
)
async def test_a_limit_for_this_question_alone_is_not_remembered(message: str) -> None:
    def small(request: ChatRequest) -> Answer:
        return completion("hi") if len(server.requests) > 1 else complaint(message)

    async with LoopbackServer(small) as server:
        assert (await voice_at(server).speak(FULL_TURN)).attempts == 2
        await voice_at(server).speak(FULL_TURN)
    assert [request.body["max_tokens"] for request in server.requests] == [900, 496, 900]


async def test_an_answer_that_failed_at_json_is_asked_without_a_schema_once() -> None:
    failed = complaint("Failed to generate JSON.", code="json_validate_failed", failed_generation="")
    async with LoopbackServer(one_after_another(failed, completion("hi"))) as server:
        assert (await voice_at(server).speak(FULL_TURN)).attempts == 2
        await voice_at(server).speak(FULL_TURN)
    assert ["response_format" in request.body for request in server.requests] == [True, False, True]


@pytest.mark.parametrize(
    "answer",
    [
        failure(404, "The model `m` does not exist or you do not have access to it."),
        complaint("m is not a valid model ID", code=400),
        complaint("Model Not Exist"),
        complaint("This model's maximum context length is 4096 tokens. However, you requested 9000 tokens."),
        complaint("prompt too long; exceeded max context length by 12 tokens"),
        complaint("The total length of all messages is too long.", type="too_many_prompt_tokens"),
        complaint("request (5 tokens) exceeds the available context size (4 tokens), try increasing it"),
        complaint("Please reduce the length of the messages or completion. See temperature, seed."),
        complaint("Unsupported parameter: 'stop' is not supported with this model.", param="stop"),
        complaint("Error while downloading an image."),
        failure(413, "Request too large"),
    ],
)
async def test_what_no_change_mends_is_not_sent_twice(answer: Answer) -> None:
    async with LoopbackServer(lambda _: answer) as server:
        error = await lost(voice_at(server), FULL_TURN)
    assert (error.kind, error.attempts, len(server.requests)) == ("http_error", 1, 1)


async def test_an_endpoint_that_cannot_be_pleased_is_left_alone() -> None:
    async with LoopbackServer(lambda _: complaint("temperature: no")) as server:
        error = await lost(voice_at(server), FULL_TURN)
    assert (error.kind, len(server.requests)) == ("http_error", 2)


# -- refusals --------------------------------------------------------------------------------------------


def filtered_by_azure() -> Answer:
    results = {
        "hate": {"filtered": True, "severity": "high"},
        "violence": {"filtered": False, "severity": "safe"},
    }
    choice = {"index": 0, "finish_reason": "content_filter", "content_filter_results": results}
    return as_json({"choices": [choice], "usage": {"prompt_tokens": 15, "completion_tokens": 19}})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            as_json(
                {"code": "No permission", "error": "Content violates usage guidelines. Failed check: SAFETY"},
                403,
            ),
            "violates usage guidelines",
        ),
        (
            passed_on({"code": "No permission", "error": "Content violates usage guidelines."}),
            "usage guidelines",
        ),
        (
            complaint(
                "Your input was flagged",
                403,
                code=403,
                metadata={"reasons": ["violence"], "flagged_input": "x"},
            ),
            "reasons: violence",
        ),
        (complaint("openai/x requires moderation", 403, metadata={"reasons": ["self-harm"]}), "self-harm"),
        (complaint("Request blocked: prompt injection patterns detected", 403), "prompt injection"),
        (complaint("Content Exists Risk", code="invalid_request_error"), "Content Exists Risk"),
        (
            complaint(
                "your prompt was flagged as potentially violating our usage policy", code="invalid_prompt"
            ),
            "flagged",
        ),
        (complaint("系统检测到输入或生成内容可能包含不安全或敏感内容", code="1301"), "敏感"),
        (
            complaint("Input data may contain inappropriate content.", code="data_inspection_failed"),
            "inappropriate",
        ),
        (complaint("Output blocked by content filtering policy"), "blocked"),
        (complaint("The request was rejected because it was considered high risk"), "high risk"),
        (
            as_json({"error": {"code": "content_filter", "status": 400, "message": "filtered"}}),
            "filtered (HTTP 400)",
        ),
        (as_json({"base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}}), "new_sensitive"),
        (filtered_by_azure(), "finish_reason content_filter): hate high"),
        (completion("", finish_reason="sensitive"), "finish_reason sensitive"),
        (completion("", finish_reason="content_filter: PROHIBITED_CONTENT"), "prohibited_content"),
        (completion([{"type": "refusal", "refusal": "I will not."}]), "I will not."),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
async def test_a_refusal_is_a_refusal_in_the_provider_s_words(answer: Answer, words: str) -> None:
    async with LoopbackServer(lambda _: answer) as server:
        error = await lost(voice_at(server, "openrouter"), FULL_TURN)
    assert (error.kind, error.attempts) == ("refused", 1)
    assert words in str(error)
    assert "check the key" not in str(error)


async def test_what_a_refused_answer_took_is_kept() -> None:
    async with LoopbackServer(lambda _: filtered_by_azure()) as server:
        error = await lost(voice_at(server, "openrouter"))
    assert error.usage == Usage(15, None, 19)


async def test_a_key_that_is_not_for_this_model_is_no_refusal() -> None:
    async with LoopbackServer(
        lambda _: failure(403, "You are not allowed to sample from this model")
    ) as server:
        error = await lost(voice_at(server, "openrouter"))
    assert error.kind == "http_error"
    assert "check the key in OPENROUTER_API_KEY" in str(error)


# -- tokens and money --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 241}, Usage(12, None, 229)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(9, None, 32),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 40,
                "total_tokens": 49,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(9, None, 40),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 24,
                "total_tokens": 63,
                "prompt_tokens_details": {"audio_tokens": 30},
            },
            Usage(9, None, 24),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 1015,
                "cache_read_input_tokens": 1000,
            },
            Usage(10, 1000, 5),
        ),
        ({"input_tokens": 5, "output_tokens": 6.0}, Usage(5, None, 6)),
        ({"prompt_tokens": 5, "completion_tokens": 6, "prompt_cache_hit_tokens": 4}, Usage(5, 4, 6)),
        ({"prompt_tokens": 5, "completion_tokens": 6, "num_cached_tokens": 3}, Usage(5, 3, 6)),
        ({"prompt_tokens": 5, "completion_tokens": 6, "cached_tokens": 2}, Usage(5, 2, 6)),
        (
            {"prompt_tokens": 5, "completion_tokens": 6, "prompt_tokens_details": None, "cached_tokens": 0},
            Usage(5, 0, 6),
        ),
        ({"prompt_tokens": 5, "completion_tokens": 6, "cost": {"total_cost": 0.5}}, Usage(5, None, 6, 0.5)),
        (
            {"prompt_tokens": 5, "completion_tokens": 6, "cost_in_usd_ticks": 20_000_000},
            Usage(5, None, 6, 0.002),
        ),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 6,
                "cost": 0.25,
                "is_byok": True,
                "cost_details": {"upstream_inference_cost": 0.5},
            },
            Usage(5, None, 6, 0.75),
        ),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 6,
                "cost": 0.5,
                "is_byok": False,
                "cost_details": {"upstream_inference_cost": 0.5},
            },
            Usage(5, None, 6, 0.5),
        ),
    ],
)
async def test_tokens_and_money_in_any_spelling(usage: dict[str, Any], expected: Usage) -> None:
    async with LoopbackServer(lambda _: completion("hi", usage=usage)) as server:
        assert (await voice_at(server, "mistral").speak(TURN)).usage == expected


async def test_what_every_attempt_took_is_added_up() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "cost": 0.25}
    broken = completion("par", usage=usage, finish_reason="error")
    async with LoopbackServer(one_after_another(broken, broken, completion("hi", usage=usage))) as server:
        reply = await voice_at(server, "mistral").speak(TURN)
    assert (reply.attempts, reply.usage) == (3, Usage(30, None, 9, 0.75))


@pytest.mark.parametrize(
    "unmetered",
    [
        replace(completion("hi"), delivery="half"),
        completion("late", latency=30),
        failure(504, "gateway timeout"),
        Answer(delivery="reset"),
    ],
    ids=["cut", "late", "gateway", "reset"],
)
async def test_an_attempt_of_which_nobody_says_what_it_took_is_estimated(unmetered: Answer) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "cost": 0.25}
    async with LoopbackServer(one_after_another(unmetered, completion("hi", usage=usage))) as server:
        voice = voice_at(server, "mistral")
        reply = await voice.speak(TURN._replace(attempt_seconds=0.5))
    assert reply.usage == Usage(10, None, 3, 0.25) + voice.estimate(TURN).as_estimate()


@pytest.mark.parametrize("answer", [failure(429, "busy"), failure(503, "busy"), failure(401, "no")])
async def test_an_attempt_that_was_turned_away_took_nothing(answer: Answer) -> None:
    async with LoopbackServer(lambda _: answer) as server:
        error = await lost(voice_at(server, "mistral"))
    assert error.usage == Usage()


async def test_a_retry_that_the_budget_has_no_room_for_is_not_made() -> None:
    asked: list[Usage] = []

    def affords_nothing(more: Usage) -> bool:
        asked.append(more)
        return False

    turn = TURN._replace(affords=affords_nothing)
    async with LoopbackServer(lambda _: replace(completion("hi"), delivery="half")) as server:
        voice = voice_at(server)
        error = await lost(voice, turn)
    assert (error.kind, error.attempts, len(server.requests)) == ("connection", 1, 1)
    assert str(error).partition(";")[2].startswith(" the budget has no room for a retry")
    assert asked == [voice.estimate(TURN)]


# -- waiting -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "seconds"),
    [
        ("2", 2.0),
        ("0.25", 0.25),
        ("12ms", 0.012),
        ("5.42s", 5.42),
        ("20m9.6s", 1209.6),
        ("1h2m", 3720.0),
        ("1m13.4s", 73.4),
        ("3 seconds", 3.0),
        ("5 minutes", 300.0),
        ("2s", 2.0),
        ("nan", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_wait_in_any_spelling(spelled: str, seconds: float | None) -> None:
    assert seconds_in(spelled) == (None if seconds is None else pytest.approx(seconds))


def test_points_in_time_are_waits_too() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=40)
    for spelled in (soon.isoformat(), str(soon.timestamp()), str(int(soon.timestamp() * 1000))):
        assert seconds_in(spelled) == pytest.approx(40, abs=2)


@pytest.mark.parametrize(
    ("headers", "delays", "words", "wait"),
    [
        ({"retry-after-ms": "1500", "retry-after": "2"}, (), "", 1.5),
        ({"retry-after-ms": "0", "retry-after": "1"}, (), "", 1.0),
        ({}, ("2s",), "", 2.0),
        ({}, (), "Please try again in 4.77s. Visit the docs.", 4.77),
        ({}, (), "Please retry after 1 second.", 1.0),
        ({}, (), "Please retry in 56.5s.", 56.5),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "9s",
                "x-ratelimit-remaining-tokens": "5000",
                "x-ratelimit-reset-tokens": "2s",
            },
            (),
            "",
            9.0,
        ),
        ({"x-ratelimit-reset-requests": "9s", "x-ratelimit-reset-tokens": "250ms"}, (), "", 0.25),
        ({"x-ratelimit-reset": "3"}, (), "", 3.0),
        ({"retry-after": "1e308"}, (), "", 366 * 86400),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, (), "", 366 * 86400),
        ({}, (), "slow down", None),
    ],
)
def test_the_wait_that_an_answer_asks_for(
    headers: dict[str, str], delays: tuple[str, ...], words: str, wait: float | None
) -> None:
    assert stated_wait(headers, delays, words) == (None if wait is None else pytest.approx(wait))


def google_quota(quota: str, delay: str) -> Answer:
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    message = "You exceeded your current quota, please check your plan and billing details."
    return as_json([{"error": {"code": 429, "message": message, "details": details}}], 429)


async def test_google_s_delay_is_waited_for() -> None:
    retries: list[Retry] = []
    busy = google_quota("GenerateContentInputTokensPerModelPerMinute-FreeTier", "0.2s")
    async with LoopbackServer(one_after_another(busy, completion("hi"))) as server:
        await voice_at(server).speak(TURN._replace(on_retry=retries.append))
    assert retries[0].wait_seconds >= 0.2


@pytest.mark.parametrize(
    "answer",
    [
        google_quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "0.1s"),
        failure(429, "Rate limit exceeded: free-models-per-day. Add 10 credits", retry_after="0.1"),
        failure(429, "Rate limit reached on tokens per day (TPD): Limit 100, Used 99. Try again in 0.1s"),
        failure(429, "Request too large for m on tokens per min (TPM): Limit 30000, Requested 342389."),
        failure(429, "Limit 6000, Requested 14810, please reduce your message size"),
        complaint("exceeded your quota", 429, code="insufficient_quota"),
        complaint("余额不足或无可用资源包", 429, code="1113"),
        failure(429, "slow down", x_should_retry="false"),
    ],
)
async def test_a_429_that_no_waiting_cures_is_final(answer: Answer) -> None:
    async with LoopbackServer(lambda _: answer) as server:
        error = await lost(voice_at(server))
    assert (error.kind, error.attempts) == ("rate_limited", 1)


@pytest.mark.parametrize(
    ("answer", "attempts"),
    [
        (failure(498, "flex tier capacity exceeded"), 10),
        (failure(529, "Overloaded"), 5),
        (failure(500, "no", x_should_retry="false"), 1),
        (failure(400, "odd", x_should_retry="true"), 5),
        (failure(500, "the prompt is too long"), 1),
        (completion("par", finish_reason="error"), 5),
        (completion("par", finish_reason="insufficient_system_resource"), 5),
    ],
)
async def test_what_passes_is_tried_again(answer: Answer, attempts: int) -> None:
    async with LoopbackServer(lambda _: answer) as server:
        error = await lost(voice_at(server))
    assert error.attempts == len(server.requests) == attempts


# -- what comes back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", [None, "", "eos", "stop", "STOP", "end_turn"])
async def test_a_whole_answer_counts_as_finished(reason: str | None) -> None:
    message = {"role": "assistant", "content": "whole"}
    async with LoopbackServer(
        lambda _: as_json({"choices": [{"message": message, "finish_reason": reason}]})
    ) as server:
        reply = await voice_at(server).speak(TURN)
    assert (reply.text, reply.finished, reply.cut_short) == ("whole", True, False)


async def test_a_model_that_thought_until_its_limit_is_cut_short() -> None:
    spent = complaint("Could not finish the message because max_tokens or model output limit was reached.")
    async with LoopbackServer(lambda _: spent) as server:
        reply = await voice_at(server).speak(FULL_TURN)
    assert (reply.text, reply.cut_short, reply.attempts) == ("", True, 1)
    assert reply.usage.estimated_tokens > 0


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
async def test_a_cut_answer_says_so(reason: str) -> None:
    async with LoopbackServer(lambda _: completion("cu", finish_reason=reason)) as server:
        reply = await voice_at(server).speak(TURN)
    assert (reply.finished, reply.cut_short) == (False, True)


def stream(*chunks: dict[str, Any], done: bool = True) -> Answer:
    lines = [
        ": keep waiting",
        *(f"data: {json.dumps(chunk)}" for chunk in chunks),
        *(["data: [DONE]"] if done else []),
    ]
    return Answer("\n\n".join(lines).encode(), content_type="text/event-stream")


def delta(finish_reason: str | None = None, **words: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": words, "finish_reason": finish_reason}]}


async def test_a_stream_that_nobody_asked_for_is_put_together() -> None:
    counted = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}}
    answer = stream(
        delta(role="assistant", content=""),
        delta(reasoning="I th"),
        delta(reasoning="ink"),
        delta(content="he"),
        delta(content="llo"),
        delta("stop"),
        counted,
    )
    async with LoopbackServer(lambda _: answer) as server:
        reply = await voice_at(server, "mistral").speak(TURN)
    assert (reply.text, reply.reasoning_trace, reply.finished) == ("hello", "I think", True)
    assert reply.usage == Usage(7, None, 5)


async def test_a_stream_that_breaks_off_is_no_answer() -> None:
    answers = one_after_another(stream(delta(content="he"), done=False), stream(delta(content="hello")))
    async with LoopbackServer(answers) as server:
        reply = await voice_at(server).speak(TURN)
    assert (reply.text, reply.attempts, reply.finished) == ("hello", 2, True)


async def test_an_error_inside_a_stream_is_an_error() -> None:
    broken = stream(delta(content="he"), {"error": {"code": 502, "message": "upstream is gone"}})
    async with LoopbackServer(lambda _: broken) as server:
        error = await lost(voice_at(server))
    assert (error.kind, error.attempts) == ("http_error", 5)
    assert str(error).startswith("upstream is gone (HTTP 502)")


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", "text/html", ""])
async def test_json_is_json_whatever_it_is_called(kind: str) -> None:
    async with LoopbackServer(lambda _: replace(completion("hi"), content_type=kind)) as server:
        assert (await voice_at(server).speak(TURN)).text == "hi"


async def test_a_compressed_answer_is_read() -> None:
    whole = completion("hi")
    zipped = replace(whole, body=gzip.compress(whole.body), headers={"content-encoding": "gzip"})
    async with LoopbackServer(lambda _: zipped) as server:
        assert (await voice_at(server).speak(TURN)).text == "hi"


@pytest.mark.parametrize("encoding", ["br", "zstd"])
async def test_an_encoding_nobody_asked_for_is_told_in_one_line(encoding: str) -> None:
    odd = Answer(b"\x8b\x02\x80hello\x03", headers={"content-encoding": encoding})
    async with LoopbackServer(lambda _: odd) as server:
        error = await lost(voice_at(server))
    assert (error.kind, error.attempts) == ("http_error", 1)
    assert str(error).startswith(f"the answer cannot be read: it came in the encoding {encoding}")


PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>502 Bad\n Gateway &amp; more</title></head><body>long</body></html>"
)


async def test_a_web_page_is_shown_as_its_title() -> None:
    async with LoopbackServer(lambda _: Answer(PAGE, 502, "text/html")) as server:
        assert str(await lost(voice_at(server))).startswith("502 Bad Gateway & more (HTTP 502)")
    async with LoopbackServer(lambda _: Answer(PAGE, 200, "text/html")) as server:
        error = await lost(voice_at(server))
    assert str(error).startswith("answered with a web page, not JSON: 502 Bad Gateway & more")


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (complaint("Your credit balance is too low to access the API."), "add credit at openrouter"),
        (failure(403, "Your new team doesn't have any credits yet."), "add credit at openrouter"),
        (complaint("API key not valid. Please pass a valid API key."), "check the key in OPENROUTER_API_KEY"),
        (failure(403, "Country, region, or territory not supported"), "choose a provider that serves"),
        (failure(404, "No endpoints found that support tool use."), ""),
        (as_json({"object": "error", "message": "no such thing", "code": 400}), ""),
    ],
)
async def test_the_advice_fits_the_words(answer: Answer, advice: str) -> None:
    async with LoopbackServer(lambda _: answer) as server:
        error = await lost(voice_at(server, "openrouter"))
    assert (error.kind, error.attempts) == ("http_error", 1)
    assert str(error).partition("; ")[2].startswith(advice)
    assert advice or "; " not in str(error)


async def test_the_provider_s_word_that_it_lacks_the_model_is_kept() -> None:
    for answer in (complaint("own/m is not a valid model ID"), failure(404, "model 'm' not found")):
        async with LoopbackServer(one_after_another(answer)) as server:
            error = await lost(voice_at(server))
        assert error.unknown_model
        assert "check the name of the model, 'm' at vllm" in str(error)
    async with LoopbackServer(lambda _: failure(401, "no key")) as server:
        assert not (await lost(voice_at(server))).unknown_model


async def test_learning_is_of_a_model_not_of_a_call() -> None:
    rule, _ = RULES["no seed, Google's"]
    async with LoopbackServer(lambda request: rule(request.body) or completion("hi")) as server:
        with pytest.raises(VoiceError):
            await voice_at(server).speak(FULL_TURN._replace(deadline=0.0))
        assert (await voice_at(server).speak(FULL_TURN)).attempts == 2
        other = HostedVoice("vllm:n", PROVIDERS["vllm"].at(server.base_url), "n", backoff=QUICK)
        assert (await other.speak(FULL_TURN)).attempts == 2
