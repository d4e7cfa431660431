"""A key goes to its provider and nowhere else, however hard an endpoint tries to bring it back."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from firecircle import (
    ConfigError,
    EvaluationError,
    FireCircleConfig,
    FireCircleError,
    MultiNeutrosophicPrompt,
    PromptGuard,
    fire_circle_evaluate,
    fire_circle_events,
    replay_circle,
)
from firecircle.settings import user_folder
from tests.cli.running import TRIO, Ran, assert_one_line_of_trouble, endpoint, ran_apart
from tests.loopback import VERDICT, Answer, ChatRequest, LoopbackServer, as_json, completion, failure

CANARY = "sk-or-v1-c4n4ry0123456789abcdef"
PIECE = CANARY[:14]
PROMPT = MultiNeutrosophicPrompt(user="Go on, as we agreed earlier.")
Cli = Callable[..., Ran]


def echoing(request: ChatRequest) -> Answer:
    """An endpoint that plays the key back in everything it says."""
    key = request.headers["authorization"].removeprefix("Bearer ")
    said = {**json.loads(VERDICT), "reasoning": f"I was given {key}", key: key}
    usage = {"prompt_tokens": 10, "completion_tokens": 10}
    return completion(json.dumps(said), reasoning=f"thinking of {key}", usage=usage)


def refusing(request: ChatRequest) -> Answer:
    return failure(401, f"Incorrect API key provided: {request.headers['authorization']}")


def shouting(request: ChatRequest) -> Answer:
    key = request.headers["authorization"]
    return as_json({"error": {"message": key, "metadata": {"raw": key}}}, 429, retry_after="0.01", x_key=key)


ENDPOINTS = [echoing, refusing, shouting, lambda _: Answer(delivery="reset")]


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", CANARY)


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("script", ENDPOINTS, ids=["echo", "401", "429", "reset"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "hi", "--models", TRIO, "--verbose"],
        ["evaluate", "hi", "--models", TRIO, "--json"],
        ["evaluate", "hi", "--models", TRIO, "--json=full"],
        ["evaluate", "hi", "--models", TRIO.split(",")[0], "--mode", "single", "--json=full"],
        ["evaluate", "hi", "--models", TRIO, "--mode", "parallel", "--verbose"],
        ["evaluate", "hi", "--models", TRIO, "--dry-run"],
        ["doctor", *TRIO.split(",")],
        ["doctor", *TRIO.split(","), "--json"],
        ["voices"],
        ["voices", "--json"],
    ],
    ids=lambda arguments: "-".join(arguments)[:40],
)
def test_no_command_shows_the_key(
    cli: Cli,
    script: Callable[[ChatRequest], Answer],
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    settings_file: Callable[[str], Path],
) -> None:
    settings_file("[circle]\ncache_enabled = true\ntimeout_per_round = 1\nseed = 1\n")
    with endpoint(script) as server, caplog.at_level(logging.DEBUG):
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        ran = cli(*arguments)
    if arguments[0] != "voices" and "--dry-run" not in arguments:
        assert all(CANARY in request.headers["authorization"] for request in server.requests)
        assert server.requests
    assert PIECE not in ran.out + ran.err + caplog.text
    for file in user_folder("cache").glob("*"):
        assert PIECE.encode() not in file.read_bytes()


@pytest.mark.parametrize("script", ENDPOINTS, ids=["echo", "401", "429", "reset"])
async def test_no_result_error_event_or_recording_holds_the_key(
    script: Callable[[ChatRequest], Answer],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    config = FireCircleConfig(
        models=tuple(TRIO.split(",")), api_key=CANARY, timeout_per_round=2, cache_enabled=True, seed=1
    )
    told: list[str] = []
    async with LoopbackServer(script) as server:
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        try:
            result = await fire_circle_evaluate(
                PROMPT, config, on_event=lambda event: told.append(event.model_dump_json() + repr(event))
            )
        except EvaluationError as error:
            told.append("".join(traceback.format_exception(error)) + repr(error) + str(error))
            result = error.partial_result  # type: ignore[assignment]
    assert result is not None
    assert server.requests
    assert CANARY in server.requests[0].headers["authorization"]
    told += [result.model_dump_json(), repr(result), repr(config), str(config), config.model_dump_json()]
    try:
        told.append((await replay_circle(result)).model_dump_json())
    except FireCircleError as error:
        told.append("".join(traceback.format_exception(error)))
    assert PIECE not in "".join(told)


async def test_a_broken_key_is_not_shown_by_the_http_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", f"{CANARY}\r\nx-evil: 1")
    with pytest.raises(ConfigError) as raised:
        async for _ in fire_circle_events(PROMPT, FireCircleConfig()):
            pass
    assert PIECE not in "".join(traceback.format_exception(raised.value))


def test_a_bug_s_traceback_does_not_hold_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = ran_apart(
        "evaluate",
        "hi",
        "--models",
        TRIO,
        OPENROUTER_API_KEY=CANARY,
        FIRECIRCLE_OPENROUTER_BASE_URL="http://[::1",
    )
    assert ran.status == 2
    assert PIECE not in ran.out + ran.err


# -- what a user is told -------------------------------------------------------------------------------


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("mode", ["single", "fire_circle"])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            failure(401, "No auth credentials found"),
            ["No auth credentials found", "check the key in OPENROUTER_API_KEY"],
        ),
        (failure(403, "Key expired"), ["Key expired (HTTP 403)", "wrong, expired or not for this model"]),
        (
            failure(404, "No endpoints found"),
            ["No endpoints found (HTTP 404)", "check the name of the model"],
        ),
        (
            failure(402, "Insufficient credits"),
            ["Insufficient credits (HTTP 402)", "add credit at openrouter"],
        ),
    ],
    ids=["401", "403", "404", "402"],
)
def test_the_provider_s_words_and_the_way_out_in_one_line(
    cli: Cli, answer: Answer, words: list[str], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = TRIO.split(",")[0] if mode == "single" else TRIO
    with endpoint(lambda _: answer) as server:
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        ran = cli("evaluate", "hi", "--mode", mode, "--models", models)
    assert ran.status == 2
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    for word in words:
        assert word in ran.err


@pytest.mark.usefixtures("keyed")
def test_nobody_listening(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, settings_file: Callable[[str], Path]
) -> None:
    settings_file("[circle]\ntimeout_per_round = 1\n")
    with endpoint(lambda _: completion()) as server:
        pass
    monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
    ran = cli("evaluate", "hi", "--models", TRIO)
    assert ran.status == 2
    assert ran.trouble.count("\n") == 1
    assert f"openrouter at {server.base_url}" in ran.err
    assert (
        "is it running and reachable? its address can be set with FIRECIRCLE_OPENROUTER_BASE_URL" in ran.err
    )


def test_no_key(cli: Cli) -> None:
    assert_one_line_of_trouble(
        cli("evaluate", "hi", "--models", TRIO), "openrouter needs a key: set OPENROUTER_API_KEY"
    )


def test_a_panel_carries_its_accounting(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.25}
    monkeypatch.setenv("OPENROUTER_API_KEY", CANARY)
    with endpoint(lambda _: completion(usage=usage)) as server:
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        ran = cli("evaluate", "hi", "--models", TRIO, "--mode", "parallel")
        told = json.loads(cli("evaluate", "hi", "--models", TRIO, "--mode", "parallel", "--json=full").out)
        layered = asyncio.run(PromptGuard().evaluate("be kind", user="hi", mode="single", by_layer=True))
    assert "3 calls; 30 tokens in, 15 out; $0.7500" in ran.out
    assert told["accounting"]["total"]["cost_usd"] == 0.75
    assert layered.accounting.total.calls == 2
    assert layered.accounting.by_round[1].cost_usd == 0.5
