"""The wire formats, in bodies of our own: what is sent, what an answer means, and how keys are shown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from firecircle import (
    ConfigError,
    EvaluationConfig,
    FireCircleConfig,
    Message,
    MultiNeutrosophicPrompt,
    Reply,
    Turn,
    VoiceError,
    fire_circle_evaluate,
)
from firecircle.circle.voice import Usage
from firecircle.settings import Auth, PriceTable, forget_settings
from firecircle.voices.hosted.answers import reply_in
from firecircle.voices.hosted.chat import forget_quirks
from firecircle.voices.hosted.connections import HttpAnswer
from firecircle.voices.hosted.prices import FlatTariff, price_of, saved_by_cache
from firecircle.voices.hosted.providers import PROVIDERS, Provider
from firecircle.voices.hosted.voice import HostedVoice, hosted_voice
from firecircle.voices.hosted.waits import Setback
from tests.loopback import VERDICT, Answer, ChatRequest, LoopbackServer, as_json, completion
from tests.voices.hosted.test_hosted import KEY, QUICK, SCHEMA

TURN = Turn(
    messages=(Message("system", "You evaluate."), Message("user", "the evidence\nthe question")),
    prompt=MultiNeutrosophicPrompt(user="hello"),
    question="the question",
    reply_schema=SCHEMA,
    seed=7,
    max_tokens=500,
)


def claude(*content: dict[str, Any], stop_reason: str = "end_turn", **more: Any) -> Answer:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 30,
        "output_tokens": 40,
    }
    body = {"type": "message", "role": "assistant", "model": "claude-x", "content": [*content]}
    return as_json({**body, "stop_reason": stop_reason, "usage": usage, **more})


def said(text: str = VERDICT) -> dict[str, Any]:
    return {"type": "text", "text": text}


def gpt(*output: dict[str, Any], status: str = "completed", **more: Any) -> Answer:
    usage = {
        "input_tokens": 240,
        "input_tokens_details": {"cached_tokens": 200, "cache_write_tokens": 30},
        "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 12},
        "total_tokens": 280,
    }
    body = {"object": "response", "model": "gpt-x", "status": status, "output": [*output]}
    return as_json({**body, "usage": usage, "error": None, **more})


def output(text: str = VERDICT) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": text}]}


def gemini(*parts: dict[str, Any], finish: str | None = "STOP", **more: Any) -> Answer:
    usage = {
        "promptTokenCount": 240,
        "cachedContentTokenCount": 200,
        "candidatesTokenCount": 28,
        "thoughtsTokenCount": 12,
        "totalTokenCount": 280,
    }
    candidate = {"content": {"role": "model", "parts": [*parts]}, "finishReason": finish}
    return as_json({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-x", **more})


def endpoint(server: LoopbackServer, wire: str, **more: Any) -> Provider:
    return Provider(name="own", base_url=server.base_url, wire=wire, key_variable="OWN_API_KEY", **more)


async def asked(answer: Answer, wire: str, turn: Turn = TURN) -> tuple[Reply, ChatRequest]:
    forget_quirks()
    async with LoopbackServer(lambda _: answer) as server:
        voice = HostedVoice("own:m", endpoint(server, wire), "m", SecretStr(KEY), backoff=QUICK)
        return await voice.speak(turn), server.requests[-1]


async def failed(answer: Answer, wire: str) -> VoiceError:
    with pytest.raises(VoiceError) as raised:
        await asked(answer, wire)
    return raised.value


# -- what is sent --------------------------------------------------------------------------------------


async def test_messages_has_a_limit_a_system_text_and_a_schema() -> None:
    _, request = await asked(claude(said()), "messages")
    assert request.path == "/v1/messages"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.body["system"] == "You evaluate."
    assert request.body["max_tokens"] == 500
    assert [message["role"] for message in request.body["messages"]] == ["user"]
    assert request.body["output_config"]["format"]["type"] == "json_schema"
    assert "seed" not in request.body
    assert "response_format" not in request.body


async def test_responses_stores_nothing_and_names_its_schema() -> None:
    _, request = await asked(gpt(output()), "responses")
    assert request.path == "/v1/responses"
    assert request.body["store"] is False
    assert request.body["instructions"] == "You evaluate."
    assert request.body["max_output_tokens"] == 500
    assert request.body["text"]["format"]["name"] == "evaluation"
    assert request.body["text"]["format"]["strict"] is True


async def test_gemini_has_the_model_in_its_address() -> None:
    _, request = await asked(gemini({"text": VERDICT}), "gemini")
    assert request.path == "/v1/models/m:generateContent"
    assert request.body["systemInstruction"]["parts"] == [{"text": "You evaluate."}]
    settings = request.body["generationConfig"]
    assert settings["maxOutputTokens"] == 500
    assert settings["seed"] == 7
    assert settings["responseMimeType"] == "application/json"


# -- what an answer means ------------------------------------------------------------------------------

TOOK = Usage(tokens_in=240, tokens_cached=200, tokens_out=40)
THOUGHT = "Is it so?"
CALL = {"name": "save", "input": {"city": "Paris"}}
ANSWERS = {
    "messages": (
        claude({"type": "thinking", "thinking": THOUGHT}, said()),
        claude(said("It"), stop_reason="max_tokens"),
        claude({"type": "redacted_thinking", "data": "x"}, said("It"), stop_reason="max_tokens"),
    ),
    "responses": (
        gpt({"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]}, output()),
        gpt(output("It"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    ),
    "gemini": (
        gemini({"text": THOUGHT, "thought": True}, {"text": VERDICT}),
        gemini({"text": "It"}, finish="MAX_TOKENS"),
    ),
}


@pytest.mark.parametrize("wire", ANSWERS)
async def test_words_thoughts_tokens_and_the_end(wire: str) -> None:
    whole, *cut = ANSWERS[wire]
    reply, _ = await asked(whole, wire)
    assert (reply.text, reply.reasoning_trace) == (VERDICT, THOUGHT)
    usage = reply.usage
    counts = (usage.tokens_in, usage.tokens_cached, usage.tokens_out)
    assert counts == (TOOK.tokens_in, TOOK.tokens_cached, TOOK.tokens_out)
    assert reply.finished
    for answer in cut:
        reply, _ = await asked(answer, wire)
        assert (reply.text, reply.cut_short) == ("It", True)


@pytest.mark.parametrize("wire", ANSWERS)
async def test_an_answer_is_read_in_the_format_it_came_in(wire: str) -> None:
    reply, _ = await asked(ANSWERS[wire][0], "chat")
    assert reply.text == VERDICT
    reply, _ = await asked(completion(), wire)
    assert reply.text == VERDICT


@pytest.mark.parametrize(
    ("wire", "answer", "words"),
    [
        ("messages", claude(stop_reason="refusal"), "refusal"),
        (
            "messages",
            claude(stop_reason="refusal", stop_details={"category": "x", "explanation": "I do not do this"}),
            "I do not do this",
        ),
        ("responses", gpt({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}), "No."),
        (
            "responses",
            gpt(status="incomplete", incomplete_details={"reason": "content_filter"}),
            "content_filter",
        ),
        ("gemini", gemini(finish="SAFETY"), "safety"),
        (
            "gemini",
            as_json({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
            "the prompt was blocked (PROHIBITED_CONTENT)",
        ),
    ],
)
async def test_a_refusal_in_any_format(wire: str, answer: Answer, words: str) -> None:
    failure = await failed(answer, wire)
    assert failure.kind == "refused"
    assert words in str(failure)


@pytest.mark.parametrize(
    ("wire", "answer"),
    [
        ("messages", as_json({"type": "message_batch", "processing_status": "in_progress"})),
        ("messages", as_json({"type": "error", "error": {"type": "api_error", "message": "broken"}})),
        ("responses", gpt(status="in_progress")),
        ("responses", gpt(status="failed", error={"code": "server_error", "message": "broken"})),
        ("gemini", as_json({"usageMetadata": {"promptTokenCount": 3}})),
        ("gemini", gemini(finish="MALFORMED_FUNCTION_CALL")),
    ],
)
async def test_what_is_no_answer_is_tried_again_and_fails(wire: str, answer: Answer) -> None:
    failure = await failed(answer, wire)
    assert failure.kind == "http_error"
    assert failure.attempts == QUICK.attempts


def events(*chunks: dict[str, Any]) -> Answer:
    lines = "".join(f"event: {chunk.get('type', '')}\ndata: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return Answer(lines.encode(), content_type="text/event-stream")


STREAMS: dict[str, list[dict[str, Any]]] = {
    "messages": [
        {
            "type": "message_start",
            "message": {"content": [], "usage": {"input_tokens": 5, "output_tokens": 1}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    ],
    "responses": [
        {"type": "response.created", "response": {"object": "response", "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": output("Hello")},
        {
            "type": "response.completed",
            "response": {"status": "completed", "usage": {"input_tokens": 5, "output_tokens": 2}},
        },
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]},
        {
            "candidates": [{"content": {"parts": [{"text": "lo"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2},
        },
    ],
}


@pytest.mark.parametrize("wire", STREAMS)
async def test_a_stream_is_put_together_or_broken(wire: str) -> None:
    reply, _ = await asked(events(*STREAMS[wire]), wire)
    assert (reply.text, reply.finished) == ("Hello", True)
    assert (reply.usage.tokens_in, reply.usage.tokens_out) == (5, 2)
    assert (await failed(events(*STREAMS[wire][:-1]), wire)).kind == "http_error"


@pytest.mark.parametrize(
    ("wire", "last"),
    [
        ("messages", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ("responses", {"type": "error", "message": "The server had an error", "code": "server_error"}),
        (
            "responses",
            {"type": "response.failed", "response": {"status": "failed", "error": {"message": "Overloaded"}}},
        ),
        ("gemini", {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
    ],
)
async def test_an_error_at_the_end_of_a_stream_is_an_error(wire: str, last: dict[str, Any]) -> None:
    failure = await failed(events(*STREAMS[wire][:-1], last), wire)
    assert failure.kind == "http_error"
    assert "verload" in str(failure) or "had an error" in str(failure)
    assert failure.attempts == QUICK.attempts


async def test_google_sends_a_stream_as_a_list() -> None:
    reply, _ = await asked(as_json(STREAMS["gemini"]), "gemini")
    assert reply.text == "Hello"


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    (
        "content stop_reason stop_details output status incomplete_details error usage candidates usageMetadata"
        " promptFeedback response delta message content_block item"
    ).split()
)
MARKS = st.sampled_from(
    [
        {"type": "message"},
        {"object": "response"},
        {"candidates": [{"content": {"parts": [{"text": 1}]}}]},
        {"type": "content_block_delta"},
        {"type": "message_delta"},
        {"type": "response.completed"},
    ]
)


@given(st.dictionaries(FIELDS, values, max_size=5), MARKS, st.booleans())
def test_any_body_is_a_reply_or_a_setback(body: dict[str, Any], mark: dict[str, Any], stream: bool) -> None:
    sent = events({**body, **mark}).body if stream else json.dumps({**mark, **body}).encode()
    try:
        reply = reply_in(HttpAnswer(200, {}, sent), 1)
    except Setback:
        return
    assert isinstance(reply.text, str)


# -- a model that speaks the Responses format alone -----------------------------------------------------


async def test_a_model_of_responses_alone_is_asked_there_from_then_on() -> None:
    def picky(request: ChatRequest) -> Answer:
        if request.path.endswith("/responses"):
            return gpt(output())
        words = "This model is only supported in v1/responses and not in v1/chat/completions."
        return as_json({"error": {"message": words, "type": "invalid_request_error", "param": "model"}}, 404)

    forget_quirks()
    async with LoopbackServer(picky) as server:
        voice = HostedVoice("own:m", endpoint(server, "chat"), "m", SecretStr(KEY), backoff=QUICK)
        assert (await voice.speak(TURN)).text == VERDICT
        assert (await voice.speak(TURN)).text == VERDICT
        paths = [request.path.rpartition("/")[2] for request in server.requests]
        assert paths == ["completions", "responses", "responses"]


# -- how a key is shown --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("auth", "header", "value", "path"),
    [
        (Auth(), "authorization", f"Bearer {KEY}", "/v1/chat/completions"),
        (Auth(header="x-api-key", scheme=""), "x-api-key", KEY, "/v1/chat/completions"),
        (Auth(scheme="Token"), "authorization", f"Token {KEY}", "/v1/chat/completions"),
    ],
)
async def test_a_key_is_shown_as_the_provider_wants_it(
    auth: Auth, header: str, value: str, path: str
) -> None:
    async with LoopbackServer(lambda _: completion()) as server:
        voice = HostedVoice("own:m", endpoint(server, "chat", auth=auth), "m", SecretStr(KEY))
        await voice.speak(TURN)
        assert server.requests[0].headers[header] == value
        assert server.requests[0].path == path
        assert header == "authorization" or "authorization" not in server.requests[0].headers


async def test_azure_s_deployments_are_in_the_path() -> None:
    auth = Auth(header="api-key", scheme="", query={"api-version": "2024-10-21"})
    async with LoopbackServer(lambda _: completion()) as server:
        address = f"http://127.0.0.1:{server.port}/openai/deployments/{{model}}"
        azure = Provider(name="azure", base_url=address, auth=auth, key_variable="AZURE_OPENAI_API_KEY")
        await HostedVoice("azure:my-gpt", azure, "my-gpt", SecretStr(KEY)).speak(TURN)
        sent = server.requests[0]
        assert sent.path == "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
        assert sent.headers["api-key"] == KEY


async def test_anthropic_is_asked_in_its_own_format() -> None:
    async with LoopbackServer(lambda _: claude(said())) as server:
        provider = PROVIDERS["anthropic"].at(server.base_url)
        await HostedVoice("anthropic:claude-x", provider, "claude-x", SecretStr(KEY)).speak(TURN)
        assert server.requests[0].path == "/v1/messages"
        assert server.requests[0].headers["x-api-key"] == KEY


@pytest.mark.parametrize(
    "address",
    [
        f"https://example.com/v1?key={KEY}",
        f"https://user:{KEY}@example.com/v1",
        f"https://example.com/{KEY}abcdef/v1",
        f"https://example.com/v1#{KEY}",
    ],
)
def test_a_key_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Provider(name="own", base_url=address)
    assert KEY not in str(raised.value)


def test_a_key_in_the_query_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="looks like a key") as raised:
        Auth(query={"api_key": KEY})
    assert KEY not in str(raised.value)


# -- caches, money and effort ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "provider", "name"),
    [("messages", "anthropic", "claude-x"), ("chat", "openrouter", "anthropic/claude-x")],
)
async def test_claude_is_told_what_to_cache(wire: str, provider: str, name: str) -> None:
    forget_quirks()
    async with LoopbackServer(lambda _: claude(said()) if wire == "messages" else completion()) as server:
        voice = HostedVoice(
            f"{provider}:{name}", PROVIDERS[provider].at(server.base_url), name, SecretStr(KEY)
        )
        await voice.speak(TURN._replace(opens_again=True))
        await voice.speak(TURN)
        marked, plain = (request.body["messages"][-1]["content"] for request in server.requests)
        assert [part["text"] for part in marked] == ["the evidence\n", "the question"]
        assert marked[0]["cache_control"] == {"type": "ephemeral"}
        assert plain == "the evidence\nthe question"


async def test_others_are_not_told() -> None:
    _, request = await asked(completion(), "chat", TURN._replace(opens_again=True))
    assert request.body["messages"][-1]["content"] == "the evidence\nthe question"


def test_writing_to_a_cache_has_its_price_and_reading_saves() -> None:
    tariff = FlatTariff(PriceTable(input=10, output=20, cached_input=1, cache_write=12.5))
    wrote = Usage(tokens_in=1_000_000, tokens_cached=0, tokens_out=0, tokens_written=1_000_000)
    read = Usage(tokens_in=1_000_000, tokens_cached=1_000_000, tokens_out=0)
    assert price_of(wrote, tariff) == pytest.approx(12.5)
    assert price_of(read, tariff) == pytest.approx(1.0)
    assert saved_by_cache(wrote, tariff) == pytest.approx(-2.5)
    assert saved_by_cache(read, tariff) == pytest.approx(9.0)
    three_rounds = [price_of(usage, tariff) or 0.0 for usage in (wrote, read, read)]
    assert sum(three_rounds) == pytest.approx(14.5)  # 1.45 instead of 3.0 times the price of the evidence


async def test_tokens_written_to_the_cache_are_counted() -> None:
    for wire in ("messages", "responses"):
        reply, _ = await asked(ANSWERS[wire][0], wire)
        assert reply.usage.tokens_written == 30


async def test_a_gateway_s_header_tells_the_cost() -> None:
    answer = completion(usage={"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7})
    costly = replace(answer, headers={"x-litellm-response-cost": "1.25e-05"})
    reply, _ = await asked(costly, "chat")
    assert reply.usage.cost_usd == pytest.approx(1.25e-05)
    odd = replace(answer, headers={"x-litellm-response-cost": "nan"})
    reply, _ = await asked(odd, "chat")
    assert reply.usage.cost_usd is None


async def test_a_budget_goes_by_what_a_gateway_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    told = completion(usage={"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7})
    costs = iter(["0.02", "0.02", ""])

    def gateway(_: ChatRequest) -> Answer:
        cost = next(costs)
        return replace(told, headers={"x-litellm-response-cost": cost} if cost else {})

    async with LoopbackServer(gateway) as server:
        settings = tmp_path / "firecircle.toml"
        stated = f'[providers.proxy]\nbase_url = "{server.base_url}"\nkey_variable = "PROXY_KEY"\n'
        monkeypatch.setenv("FIRECIRCLE_CONFIG", str(settings))
        monkeypatch.setenv("PROXY_KEY", KEY)
        settings.write_text(stated)
        config = EvaluationConfig(models=("proxy:m",), budget_usd=1.0)
        with pytest.raises(ConfigError, match="the price of 'proxy:m' is unknown"):
            hosted_voice("proxy:m", config)
        settings.write_text(stated + "states_cost = true\n")
        forget_settings()
        voice = hosted_voice("proxy:m", config)
        assert voice.estimate(TURN).cost_usd is None
        assert (await voice.speak(TURN)).usage.cost_usd == pytest.approx(0.02)
        assert voice.estimate(TURN).cost_usd == pytest.approx(0.02)
        await voice.speak(TURN)
        with pytest.raises(VoiceError, match="reported no cost") as raised:
            await voice.speak(TURN)
        assert raised.value.kind == "over_budget"


@pytest.mark.parametrize(
    ("wire", "effort", "place", "value"),
    [
        ("chat", "low", "reasoning_effort", "low"),
        ("messages", "high", "output_config", {"effort": "high"}),
        ("messages", "none", "thinking", {"type": "disabled"}),
        ("responses", "medium", "reasoning", {"effort": "medium"}),
        ("gemini", "low", "generationConfig", {"thinkingConfig": {"thinkingLevel": "low"}}),
        ("gemini", "none", "generationConfig", {"thinkingConfig": {"thinkingBudget": 0}}),
    ],
)
async def test_effort_is_asked_for_and_recorded(wire: str, effort: Any, place: str, value: Any) -> None:
    reply, request = await asked(completion(), wire, TURN._replace(effort=effort))
    sent = request.body[place]
    assert sent == value if isinstance(value, str) else sent.items() >= value.items()
    assert reply.effort == effort


async def test_an_endpoint_without_effort_is_asked_without_it() -> None:
    def plain(request: ChatRequest) -> Answer:
        if "reasoning" in request.body:
            words = "Unsupported parameter: 'reasoning.effort' is not supported with this model."
            return as_json({"error": {"message": words, "param": "reasoning.effort"}}, 400)
        return gpt(output())

    forget_quirks()
    async with LoopbackServer(plain) as server:
        voice = HostedVoice("own:m", endpoint(server, "responses"), "m", SecretStr(KEY), backoff=QUICK)
        reply = await voice.speak(TURN._replace(effort="low"))
        assert reply.effort is None
        assert reply.attempts == 2


def test_effort_is_a_word_for_all_or_for_each() -> None:
    models = ("openai:gpt-5", "anthropic:claude-sonnet-4-5")
    for_all = FireCircleConfig(models=models, reasoning_effort="low", enforce_quorum=False)
    assert [for_all.limits(model).reasoning_effort for model in models] == ["low", "low"]
    for_one = FireCircleConfig(models=models, reasoning_effort={models[0]: "high"}, enforce_quorum=False)
    assert [for_one.limits(model).reasoning_effort for model in models] == ["high", "default"]


# -- answers in other places -----------------------------------------------------------------------------


async def test_a_judgement_in_a_tool_s_arguments_is_read() -> None:
    call = {"type": "function", "function": {"name": "judge", "arguments": VERDICT}}
    reply, _ = await asked(completion(None, finish_reason="tool_calls", tool_calls=[call]), "chat")
    assert json.loads(reply.text) == json.loads(VERDICT)
    other = {"type": "function", "function": {"name": "go", "arguments": '{"city": "Paris"}'}}
    reply, _ = await asked(completion(None, finish_reason="tool_calls", tool_calls=[other]), "chat")
    assert reply.text == ""


async def test_an_object_as_content_is_its_json() -> None:
    reply, _ = await asked(completion(json.loads(VERDICT)), "chat")
    assert json.loads(reply.text) == json.loads(VERDICT)


async def test_a_stream_that_ends_at_the_token_limit_is_cut() -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "It tries to"}}]}
    ended = {"error": {"message": "Token limit reached", "code": 400}}
    reply, _ = await asked(events(chunk, ended), "chat")
    assert (reply.text, reply.cut_short) == ("It tries to", True)


# -- a circle in three formats --------------------------------------------------------------------------


async def test_a_circle_in_three_formats(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    forget_quirks()
    answers = {
        "messages": claude(said()),
        "responses": gpt(output()),
        "generateContent": gemini({"text": VERDICT}),
    }

    def by_format(request: ChatRequest) -> Answer:
        return next(answer for path, answer in answers.items() if request.path.endswith(path))

    async with LoopbackServer(by_format) as server:
        settings = tmp_path / "firecircle.toml"
        tables = [
            f'[providers.{name}]\nbase_url = "{server.base_url}"\nwire = "{wire}"\nkey_variable = "OWN_KEY"\n'
            for name, wire in (("claudes", "messages"), ("gpts", "responses"), ("geminis", "gemini"))
        ]
        settings.write_text("\n".join(tables))
        monkeypatch.setenv("FIRECIRCLE_CONFIG", str(settings))
        monkeypatch.setenv("OWN_KEY", KEY)
        models = ["claudes:claude-sonnet-4-5", "gpts:gpt-5", "geminis:gemini-2.5-pro"]
        config = FireCircleConfig(models=models, max_rounds=3, enforce_quorum=False)
        result = await fire_circle_evaluate(MultiNeutrosophicPrompt(user="as we agreed earlier"), config)
    assert result.consensus is not None
    assert result.consensus.falsehood == 0.8
    assert not result.failed_models
    assert {call.model for call in result.calls} == set(models)
