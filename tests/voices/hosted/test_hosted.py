"""Hosted voices against a real HTTP server on loopback that behaves, and misbehaves, as endpoints do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from firecircle import (
    ConfigError,
    FireCircleConfig,
    FireCircleResult,
    Message,
    MultiNeutrosophicPrompt,
    Reply,
    Turn,
    VoiceError,
    fire_circle_evaluate,
)
from firecircle.circle.voice import Retry, Usage
from firecircle.voices.hosted.connections import MAX_ANSWER_BYTES, aclose
from firecircle.voices.hosted.providers import PROVIDERS
from firecircle.voices.hosted.voice import Backoff, HostedVoice, hosted_voice, provider_of
from tests.loopback import Answer, ChatRequest, LoopbackServer, as_json, completion, failure

QUICK = Backoff(first_seconds=0.001, longest_seconds=0.002)
KEY = "sk-secret-0123456789"
SCHEMA = {"type": "object", "properties": {"truth": {"type": "number"}}}
TURN = Turn(
    messages=(Message("system", "You evaluate."), Message("user", "Évidence ✓")),
    prompt=MultiNeutrosophicPrompt(user="hello"),
)


def voice_at(
    server: LoopbackServer, provider: str = "vllm", *, key: str | None = None, backoff: Backoff = QUICK
) -> HostedVoice:
    where = PROVIDERS[provider].at(server.base_url)
    return HostedVoice(f"{provider}:m", where, "m", SecretStr(key) if key else None, backoff=backoff)


def one_after_another(*answers: Answer) -> Callable[[ChatRequest], Answer]:
    """The given answers in turn; the last one for good."""
    left: Iterator[Answer] = iter(answers)
    last = answers[-1]
    return lambda _: next(left, last)


async def lost(voice: HostedVoice, turn: Turn = TURN) -> VoiceError:
    with pytest.raises(VoiceError) as raised:
        await voice.speak(turn)
    return raised.value


def in_seconds(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


# -- who hosts what ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "default", "provider", "name"),
    [
        ("openai:gpt-4o", "openrouter", "openai", "gpt-4o"),
        ("anthropic/claude-sonnet-4", "openrouter", "openrouter", "anthropic/claude-sonnet-4"),
        ("deepseek/deepseek-r1:free", "openrouter", "openrouter", "deepseek/deepseek-r1:free"),
        ("openrouter:deepseek/deepseek-r1:free", "openai", "openrouter", "deepseek/deepseek-r1:free"),
        ("ollama:llama3.2:3b", "openrouter", "ollama", "llama3.2:3b"),
        ("llama3.2:3b", "ollama", "ollama", "llama3.2:3b"),
        ("vllm:meta/llama#2", "openrouter", "vllm", "meta/llama"),
        ("qwen/qwen-2.5#12", "openrouter", "openrouter", "qwen/qwen-2.5"),
    ],
)
def test_a_voice_is_provider_and_model(model: str, default: str, provider: str, name: str) -> None:
    host, model_name = provider_of(model, default)
    assert (host.name, model_name) == (provider, name)


@pytest.mark.parametrize(
    ("model", "default", "hint"),
    [
        ("opnai:gpt-4o", "openrouter", "there is no provider 'opnai'; the providers are openrouter, openai"),
        ("gpt-4o", "opnai", "no provider or family is called 'opnai'"),
    ],
)
def test_a_voice_nobody_hosts_is_a_config_error(model: str, default: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        provider_of(model, default)


def test_a_base_url_comes_from_the_config_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", "http://gpu:8000/v1/")
    monkeypatch.setenv("FIRECIRCLE_LMSTUDIO_BASE_URL", "http://desk:1234/v1")
    config = FireCircleConfig.embedded()
    assert hosted_voice("vllm:m", config).provider.base_url == "http://gpu:8000/v1"
    assert hosted_voice("lmstudio:m", config).provider.base_url == "http://desk:1234/v1"
    config = FireCircleConfig.embedded(lmstudio_base_url="http://lap:1/v1")
    assert hosted_voice("lmstudio:m", config).provider.base_url == "http://lap:1/v1"
    assert hosted_voice("ollama:m", config).provider.base_url == "http://localhost:11434/v1"


@pytest.mark.parametrize("address", ["gpu:8000", "ftp://gpu/v1", "http://", "http://me:pa55word@gpu/v1"])
def test_a_bad_base_url_is_refused_without_showing_a_password(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", address)
    with pytest.raises(ConfigError, match="FIRECIRCLE_VLLM_BASE_URL") as raised:
        hosted_voice("vllm:m", FireCircleConfig.embedded())
    assert "pa55word" not in str(raised.value)


# -- keys ----------------------------------------------------------------------------------------------


def test_a_missing_key_names_its_variable_and_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    with pytest.raises(ConfigError) as raised:
        hosted_voice("qwen/qwen-2.5", FireCircleConfig.embedded())
    assert "OPENROUTER_API_KEY" in str(raised.value)
    assert "FireCircleConfig.embedded()" in str(raised.value)


async def test_the_key_goes_to_its_own_provider_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    config = FireCircleConfig.embedded(provider="openai", api_key=KEY)
    with pytest.raises(ConfigError, match="MISTRAL_API_KEY"):
        hosted_voice("mistral:m", config)
    async with LoopbackServer(lambda _: completion("hi")) as server:
        monkeypatch.setenv("FIRECIRCLE_OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", server.base_url)
        await hosted_voice("gpt-4o", config).speak(TURN)
        await hosted_voice("vllm:m", config).speak(TURN)
    assert [request.headers.get("authorization") for request in server.requests] == [f"Bearer {KEY}", None]


async def test_the_key_in_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer(lambda _: completion("hi")) as server:
        monkeypatch.setenv("OPENROUTER_API_KEY", f"{KEY}\n")
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        await hosted_voice("qwen/qwen-2.5#2", FireCircleConfig.embedded()).speak(TURN)
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.model == "qwen/qwen-2.5"
    assert request.path == "/v1/chat/completions"


@pytest.mark.parametrize("broken", ["sk-abc\r\nx-evil: 1", "sk-abc def", "sk-äbc", "  "])
def test_a_malformed_key_is_refused_without_being_shown(broken: str) -> None:
    config = FireCircleConfig.embedded(provider="openai", api_key=broken)
    with pytest.raises(ConfigError) as raised:
        hosted_voice("gpt-4o", config)
    assert "sk-" not in str(raised.value)


@pytest.mark.parametrize(
    "answer",
    [
        failure(401, f"Incorrect API key provided: {KEY}."),
        Answer(f"x{KEY}".encode(), 403, "text/plain"),
        failure(429, f"slow down, {KEY}"),
        as_json({"error": {"message": "m", "metadata": {"raw": KEY}}}, 400),
        Answer(("é" * 290 + KEY).encode(), 500, "text/plain"),
        Answer((" " * 1190 + KEY).encode(), 500, "text/plain"),
        Answer((" " * 19_990 + KEY).encode(), 500, "text/plain"),
        completion(None, refusal=f"not for {KEY}"),
    ],
)
async def test_an_echoed_key_is_redacted_everywhere(answer: Answer) -> None:
    heard: list[Retry] = []
    async with LoopbackServer(lambda _: answer) as server:
        voice = voice_at(server, key=KEY)
        error = await lost(voice, TURN._replace(on_retry=heard.append))
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(voice) + str(heard)
    assert KEY not in shown
    assert KEY[:12] not in shown


# -- a good conversation -------------------------------------------------------------------------------


async def test_the_request_says_what_the_turn_says() -> None:
    turn = TURN._replace(max_tokens=77, temperature=0.3, seed=5, reply_schema=SCHEMA)
    async with LoopbackServer(lambda _: completion("hi")) as server:
        await voice_at(server).speak(turn)
        await voice_at(server, "mistral").speak(TURN._replace(seed=0))
    first, second = (request.body for request in server.requests)
    assert first == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You evaluate."},
            {"role": "user", "content": "Évidence ✓"},
        ],
        "max_tokens": 77,
        "temperature": 0.3,
        "seed": 5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "evaluation",
                "strict": True,
                "schema": {**SCHEMA, "required": ["truth"], "additionalProperties": False},
            },
        },
    }
    assert second["random_seed"] == 0
    assert not {"seed", "response_format"} & set(second)


async def test_text_trace_and_usage_come_back() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64},
        "cost": 0.0012,
    }
    async with LoopbackServer(lambda _: completion("hi", usage=usage, reasoning="hm")) as server:
        reply = await voice_at(server).speak(TURN)
    assert (reply.text, reply.reasoning_trace, reply.attempts) == ("hi", "hm", 1)
    assert reply.usage == Usage(100, 64, 20, 0.0012)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": True, "completion_tokens": -1, "cost": "free", "prompt_tokens_details": None},
        {"prompt_tokens": "7", "cost": float("nan")},
    ],
)
async def test_unknown_usage_stays_unknown(usage: dict[str, Any] | None) -> None:
    async with LoopbackServer(lambda _: completion("hi", usage=usage)) as server:
        voice = voice_at(server, "mistral")
        # What nobody says is unknown, and a budget counts what it may have been.
        assert (await voice.speak(TURN)).usage == voice.estimate(TURN).as_estimate()


@pytest.mark.parametrize(
    ("content", "message", "text", "trace"),
    [
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], {}, "ab", None),
        ("x", {"reasoning_content": "thought"}, "x", "thought"),
        (None, {"reasoning": "ran out of tokens"}, "", "ran out of tokens"),
        (
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Mistral's"}, "?"]},
                {"type": "text", "text": "x"},
            ],
            {},
            "x",
            "Mistral's?",
        ),
        ([{"type": "reasoning", "text": "thought"}, "x", 7, None], {}, "x", "thought"),
        ("x", {"reasoning": "", "reasoning_details": [{"type": "reasoning.text", "text": "t"}]}, "x", "t"),
        (
            "x",
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "s"}, {"data": "e"}]},
            "x",
            "s",
        ),
        ("x", {"reasoning": {"deep": [[[[["?"]]]]]}}, "x", None),
        ("x", {"reasoning": None, "refusal": None}, "x", None),
    ],
)
async def test_content_is_text_or_parts(
    content: Any, message: dict[str, Any], text: str, trace: str | None
) -> None:
    async with LoopbackServer(lambda _: completion(content, **message)) as server:
        reply = await voice_at(server).speak(TURN)
    assert (reply.text, reply.reasoning_trace) == (text, trace)


async def test_calls_in_a_row_share_a_connection_and_calls_at_once_do_not() -> None:
    async with LoopbackServer(lambda _: completion("hi", latency=0.05)) as server:
        voice = voice_at(server)
        for _ in range(3):
            await voice.speak(TURN)
        assert server.connections == 1
        await asyncio.gather(*(voice_at(server).speak(TURN) for _ in range(20)))
        assert server.connections == 20


async def test_proxies_are_not_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with LoopbackServer(lambda _: completion("hi")) as server:
        assert (await voice_at(server).speak(TURN)).text == "hi"


async def test_a_proxy_stands_before_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer(lambda _: completion("by proxy")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        voice = HostedVoice("vllm:m", PROVIDERS["vllm"].at("http://nowhere.invalid/v1"), "m")
        assert (await voice.speak(TURN)).text == "by proxy"
    assert proxy.requests[0].path == "http://nowhere.invalid/v1/chat/completions"


def test_connections_close_with_their_loop() -> None:
    async def two_circles() -> list[str]:
        async with LoopbackServer(lambda _: completion("hi")) as server:
            return [(await voice_at(server).speak(TURN)).text for _ in range(2)]

    # An open socket left behind would warn, and a warning fails the test.
    assert asyncio.run(two_circles()) == ["hi", "hi"]
    assert asyncio.run(two_circles()) == ["hi", "hi"]


async def test_connections_can_be_closed_early_and_a_call_under_way_finishes() -> None:
    asked = asyncio.Event()

    def slow(_: ChatRequest) -> Answer:
        asked.set()
        return completion("hi", latency=0.05)

    async with LoopbackServer(slow) as server:
        under_way = asyncio.create_task(voice_at(server).speak(TURN))
        await asked.wait()
        await aclose()
        assert (await under_way).text == "hi"
        assert (await voice_at(server).speak(TURN)).text == "hi"
        await aclose()
        await aclose()


def test_importing_the_package_does_not_import_the_http_library() -> None:
    code = "import sys, firecircle, firecircle.voices.hosted.voice; print('aiohttp' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


# -- fields that some models do not take ---------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 422, 500])
async def test_a_schema_that_is_turned_down_is_left_out_and_remembered(status: int) -> None:
    def picky(request: ChatRequest) -> Answer:
        if "response_format" in request.body:
            return failure(status, "response_format is not supported")
        return completion("hi")

    heard: list[Retry] = []
    turn = TURN._replace(reply_schema=SCHEMA, on_retry=heard.append)
    async with LoopbackServer(picky) as server:
        assert (await voice_at(server).speak(turn)).attempts == 2
        assert (await voice_at(server).speak(turn)).attempts == 1
    assert ["response_format" in request.body for request in server.requests] == [True, False, False]
    assert [(retry.attempt, retry.wait_seconds) for retry in heard] == [(2, 0.0)]


async def test_what_was_learnt_of_one_model_is_not_held_against_another() -> None:
    def picky(request: ChatRequest) -> Answer:
        if request.model == "m" and "response_format" in request.body:
            return failure(400, "response_format is not supported")
        return completion("hi")

    turn = TURN._replace(reply_schema=SCHEMA)
    async with LoopbackServer(picky) as server:
        await voice_at(server).speak(turn)
        other = HostedVoice("vllm:n", PROVIDERS["vllm"].at(server.base_url), "n")
        await other.speak(turn)
    assert "response_format" in server.requests[-1].body


async def test_a_fault_that_is_not_the_schema_s_is_not_blamed_on_it() -> None:
    turn = TURN._replace(reply_schema=SCHEMA)
    async with LoopbackServer(one_after_another(failure(400, "too long"), completion("hi"))) as server:
        error = await lost(voice_at(server), turn)
        assert (error.kind, error.attempts, str(error)) == ("http_error", 1, "too long (HTTP 400)")
        assert (await voice_at(server).speak(turn)).attempts == 1
    assert ["response_format" in request.body for request in server.requests] == [True, True]


async def test_parameters_a_model_names_as_unsupported_are_conceded_one_by_one() -> None:
    def reasoning_model(request: ChatRequest) -> Answer:
        for field, code in (("max_tokens", "unsupported_parameter"), ("temperature", "unsupported_value")):
            if field in request.body:
                error = {"message": f"Unsupported: '{field}'", "param": field, "code": code}
                return as_json({"error": error}, 400)
        return completion("hi")

    async with LoopbackServer(reasoning_model) as server:
        reply = await voice_at(server).speak(TURN._replace(max_tokens=77, reply_schema=SCHEMA))
    assert reply.attempts == 3
    accepted = server.requests[-1].body
    assert accepted["max_completion_tokens"] == 77
    assert not {"max_tokens", "temperature"} & set(accepted)
    assert "response_format" in accepted


# -- trying again --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setback", "reason"),
    [
        (failure(429, "slow down"), "slow down (HTTP 429)"),
        (failure(408), "Request Timeout (HTTP 408)"),
        (failure(500, "oops"), "oops (HTTP 500)"),
        (failure(503, "overloaded"), "overloaded (HTTP 503)"),
        (replace(completion("hi"), delivery="half"), "closed before the answer was whole"),
        (Answer(delivery="reset"), "vllm at http://127.0.0.1"),
        (as_json({"error": {"code": 429, "message": "slow down"}}), "slow down (HTTP 429)"),
        (as_json({"error": {"code": "502", "message": "bad"}}), "bad (HTTP 502)"),
        (as_json({"choices": [{"error": {"code": 503, "message": "gone"}}]}), "gone (HTTP 503)"),
        (as_json({"choices": []}), "the answer has no choices"),
        (as_json({"choices": "none"}), "the answer has no choices"),
        (as_json({"choices": [{"message": None}]}), "the answer has no message"),
        (completion(None, finish_reason=""), "the answer is empty: no text, and no reason why it ended"),
        (Answer(b" \n"), "the answer is empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_passing_setback_is_tried_again(setback: Answer, reason: str) -> None:
    heard: list[Retry] = []
    turn = TURN._replace(on_retry=heard.append)
    async with LoopbackServer(one_after_another(setback, setback, completion("hi"))) as server:
        reply = await voice_at(server).speak(turn)
    assert (reply.text, reply.attempts) == ("hi", 3)
    assert [retry.attempt for retry in heard] == [2, 3]
    assert all(reason in retry.reason for retry in heard)


SILENT = completion("late", latency=30)
DRIPPING = replace(completion("late"), delivery="drip", drip_seconds=0.1)


@pytest.mark.parametrize("late", [SILENT, DRIPPING], ids=["silent", "dripping"])
async def test_an_attempt_that_takes_too_long_is_tried_again(late: Answer) -> None:
    heard: list[Retry] = []
    turn = TURN._replace(attempt_seconds=1, on_retry=heard.append)
    async with LoopbackServer(one_after_another(late, completion("hi"))) as server:
        reply = await voice_at(server).speak(turn)
    assert (reply.text, reply.attempts) == ("hi", 2)
    assert [retry.reason for retry in heard] == ["no complete answer within 1 s"]


async def test_attempts_come_to_an_end() -> None:
    async with LoopbackServer(lambda _: failure(503, "overloaded")) as server:
        error = await lost(voice_at(server))
    assert (error.kind, error.attempts, error.model) == ("http_error", 5, "vllm:m")
    assert len(server.requests) == 5


async def test_nobody_listening_is_a_lost_connection() -> None:
    async with LoopbackServer(lambda _: completion("hi")) as server:
        pass
    error = await lost(voice_at(server))
    assert (error.kind, error.attempts) == ("connection", 5)
    assert str(error).startswith(f"cannot connect (vllm at {server.base_url})")


@pytest.mark.parametrize("as_date", [False, True])
async def test_retry_after_is_honoured(as_date: bool) -> None:
    def busy_once(_: ChatRequest) -> Answer:
        if len(server.requests) > 1:
            return completion("hi")
        soon = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
        return failure(429, retry_after=soon if as_date else "0.2")

    # A date has whole seconds, so the wait it asks for is between one and two, less the way here.
    least = 0.5 if as_date else 0.2
    heard: list[Retry] = []
    turn = TURN._replace(deadline=in_seconds(30), on_retry=heard.append)
    started = asyncio.get_running_loop().time()
    async with LoopbackServer(busy_once) as server:
        assert (await voice_at(server).speak(turn)).attempts == 2
    assert asyncio.get_running_loop().time() - started >= least
    assert heard[0].wait_seconds >= least


@pytest.mark.parametrize("nonsense", ["soon", "nan", "inf", "-3", ""])
async def test_a_senseless_retry_after_is_survived(nonsense: str) -> None:
    script = one_after_another(failure(429, retry_after=nonsense), completion("hi"))
    async with LoopbackServer(script) as server:
        assert (await voice_at(server).speak(TURN)).attempts == 2


@pytest.mark.parametrize("deadline", [60, None])
async def test_a_wait_past_the_deadline_fails_at_once(deadline: float | None) -> None:
    heard: list[Retry] = []
    turn = TURN._replace(deadline=None if deadline is None else in_seconds(deadline), on_retry=heard.append)
    async with LoopbackServer(lambda _: failure(429, "slow down", retry_after="3600")) as server:
        async with asyncio.timeout(30):
            error = await lost(voice_at(server), turn)
    assert (error.kind, error.attempts) == ("rate_limited", 1)
    assert str(error).startswith("slow down (HTTP 429); no time left for a retry in 3600")
    assert heard == []


async def test_waits_double_up_to_the_longest() -> None:
    heard: list[Retry] = []
    backoff = Backoff(first_seconds=0.01, longest_seconds=0.03)
    async with LoopbackServer(lambda _: failure(500)) as server:
        await lost(voice_at(server, backoff=backoff), TURN._replace(on_retry=heard.append))
    for retry, longest in zip(heard, (0.01, 0.02, 0.03, 0.03), strict=True):
        assert longest / 2 <= retry.wait_seconds <= longest


@pytest.mark.parametrize("late", [SILENT, DRIPPING], ids=["silent", "dripping"])
async def test_the_deadline_cuts_an_attempt_short(late: Answer) -> None:
    async with LoopbackServer(lambda _: late) as server:
        async with asyncio.timeout(10):
            error = await lost(voice_at(server), TURN._replace(deadline=in_seconds(0.15)))
    assert (error.kind, error.attempts) == ("timeout", 1)


async def test_a_deadline_already_past_is_a_timeout() -> None:
    async with LoopbackServer(lambda _: completion("hi")) as server:
        assert (await lost(voice_at(server), TURN._replace(deadline=in_seconds(-1)))).kind == "timeout"


async def test_a_voice_that_timed_out_can_speak_again() -> None:
    answer = SILENT
    async with LoopbackServer(lambda _: answer) as server:
        voice = voice_at(server)
        await lost(voice, TURN._replace(deadline=in_seconds(0.1)))
        answer = completion("hi")
        assert (await voice.speak(TURN)).text == "hi"


async def test_cancelling_an_attempt_is_immediate() -> None:
    asked = asyncio.Event()

    def silent(_: ChatRequest) -> Answer:
        asked.set()
        return SILENT

    async with LoopbackServer(silent) as server:
        speaking = asyncio.create_task(voice_at(server).speak(TURN))
        await asked.wait()
        await called_off(speaking)
    assert len(server.requests) == 1


async def test_cancelling_a_wait_between_attempts_is_immediate() -> None:
    waiting = asyncio.Event()
    turn = TURN._replace(on_retry=lambda _: waiting.set())
    async with LoopbackServer(lambda _: failure(429, retry_after="30")) as server:
        speaking = asyncio.create_task(voice_at(server).speak(turn))
        await waiting.wait()
        await called_off(speaking)
    assert len(server.requests) == 1


async def called_off(speaking: asyncio.Task[Reply]) -> None:
    speaking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(speaking, 10)


# -- failures that stay --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (failure(401, "Incorrect API key"), "Incorrect API key (HTTP 401)"),
        (failure(403, "not for you"), "not for you (HTTP 403)"),
        (failure(404, "no such model"), "no such model (HTTP 404)"),
        (failure(400, "too long"), "too long (HTTP 400)"),
        (as_json({"error": "out of memory"}, 400), "out of memory (HTTP 400)"),
        (as_json([{"error": {"code": 400, "message": "Google's"}}], 400), "Google's (HTTP 400)"),
        (as_json({"object": "error", "message": "Mistral's"}, 422), "Mistral's (HTTP 422)"),
        (as_json({"detail": "FastAPI's"}, 404), "FastAPI's (HTTP 404)"),
        (
            as_json({"error": {"message": "Provider error", "metadata": {"raw": "the reason"}}}, 400),
            "Provider error: the reason (HTTP 400)",
        ),
        (Answer(b"plain words", 402, "text/plain"), "plain words (HTTP 402)"),
        (Answer(b"", 401), "HTTP 401"),
        (Answer(b"", 301, headers={"location": "/elsewhere"}), "HTTP 301"),
        (as_json({"error": {"code": 400, "message": "bad"}}), "bad (HTTP 400)"),
        (as_json({"error": {"message": "odd"}}), "odd"),
        (Answer(b"<html>log in", content_type="text/html"), "answered with a web page, not JSON: log in"),
        (Answer(b"{nope"), "the answer is not a JSON object: {nope"),
        (Answer(b"[" * 100_000), "the answer is not a JSON object: [[["),
        (Answer(b"\xff\xfe\x00"), "the answer is not a JSON object"),
        (Answer(b"7"), "the answer is not a JSON object: 7"),
        (Answer(b"not gzip", headers={"content-encoding": "gzip"}), "the answer cannot be read"),
        (Answer(b" " * (MAX_ANSWER_BYTES + 1)), "the answer cannot be read: more than"),
        (failure(401, "a\x1b[31mred\x00\u202e\nb"), "a [31mred b (HTTP 401)"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
async def test_other_answers_are_http_errors_in_the_endpoint_s_words(answer: Answer, message: str) -> None:
    async with LoopbackServer(lambda _: answer) as server:
        error = await lost(voice_at(server))
    assert error.kind == "http_error"
    assert error.attempts == len(server.requests) == 1
    assert str(error).startswith(message)


async def test_a_long_message_is_trimmed() -> None:
    async with LoopbackServer(lambda _: failure(401, "long " * 1000)) as server:
        error = await lost(voice_at(server))
    message, _, advice = str(error).partition("; ")
    assert len(message) == 300
    assert "asks for a key" in advice


async def test_a_spent_quota_is_not_waited_for() -> None:
    spent = as_json({"error": {"message": "exceeded your quota", "code": "insufficient_quota"}}, 429)
    async with LoopbackServer(lambda _: spent) as server:
        error = await lost(voice_at(server))
    assert (error.kind, error.attempts) == ("rate_limited", 1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (completion("partial", finish_reason="content_filter"), "finish_reason content_filter"),
        (completion(None, refusal="I can't help with that."), "I can't help with that."),
        (as_json({"error": {"message": "filtered", "code": "content_filter"}}, 400), "filtered (HTTP 400)"),
    ],
)
async def test_a_filter_or_a_refusal_is_refused(answer: Answer, message: str) -> None:
    async with LoopbackServer(lambda _: answer) as server:
        error = await lost(voice_at(server), TURN._replace(reply_schema=SCHEMA))
    assert (error.kind, error.attempts) == ("refused", 1)
    assert message in str(error)


# -- in a circle ---------------------------------------------------------------------------------------


async def test_a_circle_hears_hosted_voices_and_records_the_one_it_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def endpoint(request: ChatRequest) -> Answer:
        if request.model == "stranger":
            return failure(404, "no such model")
        return completion(usage={"prompt_tokens": 50, "completion_tokens": 10})

    config = FireCircleConfig(
        models=("vllm:a", "vllm:b", "vllm:stranger"), enforce_quorum=False, early_stop_convergence=0, seed=1
    )
    prompt = MultiNeutrosophicPrompt(user="Go on, as we agreed earlier.")
    async with LoopbackServer(endpoint) as server:
        monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", server.base_url)
        result = await fire_circle_evaluate(prompt, config)
    assert result.alarm
    assert result.active_models == ("vllm:a", "vllm:b")
    (gone,) = result.failures
    assert (gone.model, gone.kind, gone.message) == (
        "vllm:stranger",
        "http_error",
        "no such model (HTTP 404); check the name of the model, 'stranger' at vllm",
    )
    assert gone.attempts == 1
    assert result.accounting.by_voice["vllm:a"].tokens_in == 150
    assert [request.model for request in server.requests].count("a") == 3


async def test_what_lost_voices_took_is_in_the_accounts(
    monkeypatch: pytest.MonkeyPatch, settings_file: Callable[[str], Path]
) -> None:
    """One is refused and counted, one is cut by the round's end and estimated, two answer."""
    refused = completion(
        None, refusal="I will not.", usage={"prompt_tokens": 70, "completion_tokens": 7, "cost": 0.5}
    )

    def endpoint(request: ChatRequest) -> Answer:
        if request.model == "refuses":
            return refused
        if request.model == "late":
            return completion(latency=30)
        return completion(usage={"prompt_tokens": 50, "completion_tokens": 10})

    models = ("lab:a", "lab:b", "lab:refuses", "lab:late")
    async with LoopbackServer(endpoint) as server:
        prices = "".join(f'[prices."{model}"]\ninput = 3.0\noutput = 15.0\n' for model in models)
        settings_file(f'[providers.lab]\nbase_url = "{server.base_url}"\n{prices}')
        config = FireCircleConfig(
            models=models,
            enforce_quorum=False,
            max_rounds=2,
            timeout_per_round=1.0,
            max_tokens=100,
            budget_usd=5,
        )
        prompt = MultiNeutrosophicPrompt(user="Go on, as we agreed earlier.")
        result = await fire_circle_evaluate(prompt, config)
    accounts = result.accounting.by_voice
    assert {lost.model: lost.kind for lost in result.failures} == {
        "lab:refuses": "refused",
        "lab:late": "timeout",
    }
    assert (accounts["lab:refuses"].tokens_in, accounts["lab:refuses"].cost_usd) == (70, 0.5)
    assert accounts["lab:refuses"].estimated_usd == 0
    late = accounts["lab:late"]
    assert (late.tokens_in, late.cost_usd) == (0, None)
    # The price of a hundred tokens out, and of some hundreds in.
    assert 100 * 15e-6 < late.estimated_usd < 0.05
    assert result.accounting.total.estimated_usd == late.estimated_usd
    assert FireCircleResult.model_validate_json(result.model_dump_json()).accounting == result.accounting
