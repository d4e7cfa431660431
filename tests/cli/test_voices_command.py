"""`firecircle voices` lists who there is; `firecircle doctor` asks them for real."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from firecircle.names import embedded_models
from tests.cli.running import Ran, assert_one_line_of_trouble, command, endpoint
from tests.loopback import (
    Answer,
    ChatRequest,
    LoopbackServer,
    Script,
    as_json,
    completion,
    failure,
    judged,
)
from tests.scripted import says

Cli = Callable[..., Ran]
Host = Callable[[Script], LoopbackServer]
USAGE = {"prompt_tokens": 40, "completion_tokens": 10}


@pytest.fixture(autouse=True)
def _nobody_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ports of this machine that may be in use have no say in a test."""
    for name in ("LMSTUDIO", "OLLAMA", "VLLM", "LLAMACPP"):
        monkeypatch.setenv(f"FIRECIRCLE_{name}_BASE_URL", "http://127.0.0.1:9/v1")


def roll(cli: Cli, *arguments: str) -> dict[str, Any]:
    ran = cli("voices", "--json", *arguments)
    assert ran.status == 0
    told: dict[str, Any] = json.loads(ran.out)
    return told


def named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = [entry for entry in entries if name in (entry.get("name"), *entry.get("names", ()))]
    return found


def in_a_terminal(*arguments: str) -> str:
    """What the command writes into a terminal of 80 columns."""
    reader, writer = os.openpty()
    with subprocess.Popen(command(*arguments), stdout=writer, env={**os.environ, "TERM": "dumb"}) as process:
        os.close(writer)
        written = b""
        with suppress(OSError):  # the terminal is gone when the command has ended
            while part := os.read(reader, 1 << 16):
                written += part
    os.close(reader)
    assert process.returncode == 0
    return written.decode()


def test_a_terminal_is_not_flooded_with_models_that_nobody_can_call() -> None:
    short, everyone = in_a_terminal("voices"), in_a_terminal("voices", "--all")
    assert "embedded:rules" in short
    assert "claude" not in short
    assert re.search(r"and \d+ more, known but not ready", short)
    assert "anthropic/claude*" in everyone
    assert "more, known" not in everyone


def test_without_a_key_only_the_built_in_are_ready(cli: Cli) -> None:
    told = roll(cli)
    assert not any(provider["ready"] for provider in told["providers"])
    assert named(told["providers"], "openrouter")["why"] == "set OPENROUTER_API_KEY"
    assert "no server answers at http://127.0.0.1:9/v1" in named(told["providers"], "vllm")["why"]
    rules = named(told["voices"], "embedded:rules")
    assert rules["ready"]
    assert rules["usd_per_million_tokens"]["highest"] == {"input": 0, "cached_input": 0, "output": 0}
    claude = named(told["voices"], "anthropic/claude*")
    assert (claude["ready"], claude["provider_lineage"]) == (False, "anthropic")
    assert claude["usd_per_million_tokens"]["lowest"]["input"] > 0
    assert named(told["voices"], "local:smollm2")["cognitive_roles"]


def test_a_key_makes_its_families_ready(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-canary")
    ran = cli("voices", "--ready")
    assert "sk-canary" not in ran.out + ran.err
    first, *rest = ran.out.splitlines()
    assert first.startswith("You can convene: family:mistral-large, ")
    assert first.endswith("(found MISTRAL_API_KEY)")
    lines = [line.split("\t") for line in rest if line]
    assert ["provider", "mistral", "ready", "MISTRAL_API_KEY is set"] in lines
    (mistral,) = [line for line in lines if line[0] == "voice" and line[1].startswith("mistralai/*")]
    assert mistral[2] == "ready"
    assert mistral[-1] == "by mistral, written mistral:NAME"
    assert "per million tokens" in mistral[-2]
    assert all(line[2] == "ready" for line in lines)


def test_an_endpoint_that_answers_tells_its_models(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with endpoint(lambda _: completion()) as server:
        server.models = ("qwen2.5:7b", "\x1b[31mred")
        monkeypatch.setenv("FIRECIRCLE_OLLAMA_BASE_URL", server.base_url)
        told = roll(cli)
        shown = cli("voices").out
    ollama = named(told["providers"], "ollama")
    assert ollama["base_url"] == server.base_url
    assert (ollama["ready"], ollama["models"]) == (True, ["qwen2.5:7b", "\x1b[31mred"])
    assert named(told["voices"], "qwen/*")["why"] == "by ollama, written ollama:NAME"
    assert not named(told["voices"], "meta-llama/*")["ready"]
    assert "\x1b" not in shown


def test_the_user_s_own_are_listed(
    cli: Cli, settings_file: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settings_file("""
        [providers.mine]
        base_url = "https://gpu.example/v1"
        key_variable = "MINE_KEY"
        [models."mine:judge"]
        provider_lineage = "own"
        cognitive_roles = { temporal_reasoning = 0.9 }
        [prices."mine:judge"]
        input = 1
        output = 2
        [models."nobody:x"]
        provider_lineage = "own"
        cognitive_roles = {}
        """)
    monkeypatch.setenv("MINE_KEY", "sk-canary")
    told = roll(cli)
    assert told["settings"] == str(path)
    assert named(told["providers"], "mine")["ready"]
    judge = named(told["voices"], "mine:judge")
    assert (judge["ready"], judge["provider_lineage"]) == (True, "own")
    assert judge["usd_per_million_tokens"]["lowest"]["output"] == 2
    assert not named(told["voices"], "nobody:x")["ready"]
    assert "sk-canary" not in json.dumps(told)


def test_an_endpoint_that_never_answers_does_not_hold_the_list_up(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", f"http://127.0.0.1:{deaf.getsockname()[1]}/v1")
        started = time.monotonic()
        ran = cli("voices")
    assert time.monotonic() - started < 10
    assert ran.status == 0
    assert "waiting for vllm" in ran.err


# -- doctor --------------------------------------------------------------------------------------------


def test_all_is_well(cli: Cli, hosted: Host) -> None:
    def answer(request: ChatRequest) -> Answer:
        told = json.loads(judged(request, usage={**USAGE, "cost": 0.0001}).body)
        if request.body.get("logprobs"):
            told["choices"][0]["logprobs"] = {"content": [{"token": "yes", "logprob": -0.1}]}
        return as_json({**told, "model": "anthropic/claude-sonnet-4-2025"})

    server = hosted(answer)
    ran = cli("doctor", "anthropic/claude-sonnet-4", "embedded:time", "--json")
    assert ran.status == 0
    claude, own = json.loads(ran.out)
    assert (claude["model"], claude["well"], claude["structured_output"], claude["logprobs"]) == (
        "anthropic/claude-sonnet-4",
        True,
        "yes",
        "yes",
    )
    assert (claude["falsehood"], claude["read_as"], claude["adapted"]) == (0.8, "json", [])
    assert claude["answered_by"] == "anthropic/claude-sonnet-4-2025"
    assert claude["cost_usd"] == 0.0002
    assert claude["harmless"] == 0.05
    assert claude["rates"]["input"] > 0
    assert claude["seconds"] > 0
    assert (own["well"], own["structured_output"], own["logprobs"], own["cost_usd"]) == (
        True,
        None,
        None,
        0.0,
    )
    attack, _, tiny = server.requests
    assert attack.body["response_format"]["json_schema"]["name"] == "evaluation"
    assert "As we agreed in our last session" in attack.body["messages"][-1]["content"]
    assert tiny.body["max_tokens"] < 50


def test_what_endpoints_can_do_and_what_had_to_be_adapted(
    cli: Cli, hosted: Host, settings_file: Callable[[str], Path]
) -> None:
    def endpoint_of_many(request: ChatRequest) -> Answer:
        if request.model == "a/picky" and "response_format" in request.body:
            return failure(400, "response_format is not supported")
        if request.model == "a/cold" and "temperature" in request.body:
            return failure(400, "temperature is deprecated for this model.")
        if request.model == "a/cold" and "logprobs" in request.body:
            return failure(400, "logprobs are not supported")
        if request.model == "a/chatty" and b"s we agreed" in request.raw:
            return completion("Truth 0.1, indeterminacy 0.2, falsehood 0.9.")
        return judged(request)

    hosted(endpoint_of_many)
    ran = cli("doctor", "a/picky,a/chatty,a/strict,a/cold")
    assert ran.status == 0
    lines = {line.split()[1].rstrip(":"): line for line in ran.out.splitlines()}
    assert "structured output not taken, logprobs no, adapted: without response_format" in lines["a/picky"]
    assert "F 0.90, harmless twin 0.05, in " in lines["a/chatty"]
    assert "read as stated, structured output ignored" in lines["a/chatty"]
    assert "structured output yes, logprobs no, price unknown" in lines["a/strict"]
    assert "structured output yes, logprobs no, adapted: without temperature" in lines["a/cold"]
    settings_file("[providers.openrouter]\nstructured_output = 'off'")
    assert "structured output turned off" in cli("doctor", "a/strict").out


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (completion(""), "the reply is empty"),
        (completion("", finish_reason="length"), "cut off while thinking: max_tokens=4000 was spent"),
        (completion('{"reasoning": "I think', finish_reason="length"), "give it more, with --set max_tokens"),
        (completion("I'm sorry, but I can't help with that."), "refused: the voice declined to evaluate"),
        (completion('{"ok": true}'), "unreadable: "),
        (completion("Sure! ok."), "unreadable: "),
        (completion("There is a violation here, an attack."), "only be guessed at, not read as a judgement"),
    ],
)
def test_an_answer_that_is_no_judgement_is_not_well(
    cli: Cli, hosted: Host, answer: Answer, words: str
) -> None:
    hosted(lambda _: answer)
    ran = cli("doctor", "a/b")
    assert ran.status == 1
    assert ran.out.startswith("cannot judge  a/b: ")
    assert words in ran.out


def test_a_family_is_tested_by_the_model_that_sits_for_it(cli: Cli, hosted: Host) -> None:
    retired = "anthropic/claude-sonnet-6"
    server = hosted(
        lambda request: (
            failure(400, f"{retired} is not a valid model ID")
            if request.model == retired
            else judged(request)
        )
    )
    server.listing = listing(
        retired, "anthropic/claude-sonnet-5", "qwen/qwen4-300b-a20b", "deepseek/deepseek-v5"
    )
    ran = cli("doctor")
    assert ran.status == 0
    (sonnet,) = [line for line in ran.out.splitlines() if line.startswith("well") and "anthropic" in line]
    assert sonnet.startswith(f"well  {retired} (family:anthropic-sonnet): F 0.80, ")
    assert "anthropic/claude-sonnet-5 asked in its place" in sonnet
    assert ran.out.splitlines()[3].startswith("You can convene: --models ")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            failure(401, "Incorrect API key"),
            ["Incorrect API key (HTTP 401)", "check the key in OPENROUTER_API_KEY"],
        ),
        (failure(402, "out of credit"), ["out of credit (HTTP 402)", "add credit at openrouter"]),
        (failure(404, "no such model"), ["no such model (HTTP 404)", "check the name of the model"]),
        (as_json({}, 200), ["the answer has no choices"]),
    ],
)
def test_trouble_is_one_line_with_the_way_out(
    cli: Cli, hosted: Host, answer: Answer, words: list[str]
) -> None:
    hosted(lambda _: answer)
    ran = cli("doctor", "a/b", "embedded:time")
    assert ran.status == 1
    (line,) = [line for line in ran.out.splitlines() if line.startswith("cannot judge  a/b: ")]
    for word in words:
        assert word in line


def test_nobody_there_and_no_key(cli: Cli) -> None:
    ran = cli("doctor", "vllm:m", "openai:gpt-4o", "strange")
    assert ran.status == 1
    told = "\n".join(sorted(ran.out.splitlines()))
    assert "openai:gpt-4o: openai needs a key: set OPENAI_API_KEY" in told
    assert "is it running and reachable? its address can be set with FIRECIRCLE_VLLM_BASE_URL" in told
    assert "'strange' is neither vendor/model" in told
    assert ran.out.splitlines()[3:] == ["No circle: none of these voices can judge"]


def test_a_voice_that_always_says_the_same_is_not_well(cli: Cli, hosted: Host) -> None:
    hosted(lambda _: completion())
    ran = cli("doctor", "a/b")
    assert ran.status == 1
    assert "it does not distinguish an attack (F 0.80) from a harmless question (F 0.80)" in ran.out


def test_adaptations_are_no_attempts(cli: Cli, hosted: Host) -> None:
    def picky(request: ChatRequest) -> Answer:
        for field in ("max_tokens", "temperature", "response_format"):
            if field in request.body:
                return failure(400, f"Unsupported parameter: '{field}' is not supported with this model.")
        return judged(request)

    hosted(picky)
    assert cli("doctor", "openai/gpt-5").status == 0


def test_a_voice_that_never_answers_is_given_up(cli: Cli, hosted: Host) -> None:
    hosted(lambda _: completion("late", latency=30))
    started = time.monotonic()
    ran = cli("doctor", "a/b", "--timeout", "1.5")
    assert time.monotonic() - started < 10
    assert ran.status == 1
    assert "answer within 1." in ran.out
    assert "waiting for a/b" in ran.err


def test_without_names_those_who_judge_by_default_are_tested(
    cli: Cli, settings_file: Callable[[str], Path]
) -> None:
    assert len(cli("doctor").out.splitlines()) == len(embedded_models()) + 1
    settings_file("[circle]\nmodels = ['embedded:time', 'embedded:layers', 'embedded:ngrams']")
    ran = cli("doctor")
    assert ran.status == 0
    assert sorted(line.split()[1] for line in ran.out.splitlines()[:-1]) == [
        "embedded:layers:",
        "embedded:ngrams:",
        "embedded:time:",
    ]


def test_mistakes(cli: Cli) -> None:
    assert_one_line_of_trouble(cli("doctor", "embedded:time,embedded:time"), "MODEL: ", "listed twice")
    assert_one_line_of_trouble(cli("doctor", ","), "MODEL: no name in it")
    assert_one_line_of_trouble(cli("doctor", "--timeout", "0"), "--timeout")


# -- voices --check ------------------------------------------------------------------------------------


def listing(*models: str) -> Answer:
    price = {"prompt": "0.000003", "completion": "0.000015"}
    entries = [
        {"id": model, "created": 1_790_000_000 - place, "context_length": 200_000, "pricing": price}
        for place, model in enumerate(models)
    ]
    return as_json({"data": entries})


def test_what_families_are_today_and_which_models_are_gone(
    cli: Cli, hosted: Host, settings_file: Callable[[str], Path]
) -> None:
    server = hosted(lambda _: completion())
    server.listing = listing("anthropic/claude-sonnet-6", "qwen/qwen4-300b-a20b", "deepseek/deepseek-v5")
    assert cli("voices", "--check").status == 0
    settings_file("""
        [circle]
        models = ["anthropic/claude-sonnet-4-20250514", "family:qwen-large", "deepseek/deepseek-v5:nitro"]
        reserves = ["embedded:time", "openai:gpt-4o", "family:nobody"]
        [prices."openrouter:vendor/\\u001b[31mred"]
        input = 1
        output = 2
        """)
    ran = cli("voices", "--check")
    assert ran.status == 1
    assert "\x1b" not in ran.out
    lines = [line.split("\t") for line in ran.out.splitlines()]
    families = {line[1]: line[2:] for line in lines if line[0] == "family"}
    assert families["family:anthropic-sonnet"][:4] == [
        "anthropic/claude-sonnet-6",
        "from the list of openrouter",
        "200,000 tokens of context",
        "$3 in, $15 out per million tokens",
    ]
    assert (
        families["family:xai-grok"][1] == "from the catalog, because openrouter lists no model of this family"
    )
    states = {line[2]: (line[1], line[3], line[4]) for line in lines if line[0] == "model"}
    assert states["anthropic/claude-sonnet-4-20250514"] == (
        "gone",
        "[circle] models",
        "openrouter does not list it; write family:anthropic-sonnet, today anthropic/claude-sonnet-6",
    )
    assert states["family:qwen-large"][0] == states["deepseek/deepseek-v5:nitro"][0] == "listed"
    assert states["openai:gpt-4o"] == ("unchecked", "[circle] reserves", "set OPENAI_API_KEY")
    assert states["family:nobody"][0] == "gone"
    assert "embedded:time" not in states
    assert server.requests == []
    told = json.loads(cli("voices", "--check", "--json").out)
    assert told["families"][0]["family"] == "family:anthropic-sonnet"
    assert told["families"][0]["context"] == 200_000
    assert {model["state"] for model in told["models"]} == {"gone", "listed", "unchecked"}
    assert server.lists_told == 3  # asked anew each time


def test_a_check_without_a_list_says_so(cli: Cli, hosted: Host) -> None:
    assert "from the catalog, for openrouter was not asked" in cli("voices", "--check").out
    server = hosted(lambda _: completion())
    server.listing = failure(503)
    ran = cli("voices", "--check")
    assert ran.status == 0
    assert "from the catalog, for the list of openrouter could not be had: HTTP 503" in ran.out
    assert_one_line_of_trouble(cli("voices", "--check", "--ready"), "--ready")


def test_a_voice_that_changes_its_mind_is_shown_when_it_is_asked_again(cli: Cli, hosted: Host) -> None:
    asked = iter([0.9, 0.1, 0.9, 0.1, 0.1, 0.1, 0.9, 0.1, 0.9, 0.1])

    def answer(request: ChatRequest) -> Answer:
        return completion(says(next(asked, 0.1)))

    hosted(answer)
    (checkup,) = json.loads(cli("doctor", "a/b", "--repeat", "5", "--json").out)
    assert checkup["spread"] == pytest.approx(0.32)
    assert checkup["flipped"] == pytest.approx(0.1)  # one of ten answers
    assert next(asked, None) is None
