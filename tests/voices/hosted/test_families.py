"""Families: who sits for them today, by a provider's own list, and who when the provider has nobody of that name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from firecircle import (
    EvaluationConfig,
    FireCircleConfig,
    FireCircleResult,
    MultiNeutrosophicPrompt,
    PromptGuard,
    classify_pattern_llm,
    fire_circle_evaluate,
)
from firecircle.catalog import characteristics_of, family_of, seatable_families
from firecircle.cli.main import run
from firecircle.convene import replay_circle
from firecircle.errors import ConfigError, UnknownModelError
from firecircle.lab.plan import plan_of
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.runs.runner import Follower
from firecircle.lab.runs.starting import complete, open_run
from firecircle.names import DEFAULT_MODELS
from firecircle.settings import user_folder
from firecircle.voices.hosted.families import _models_in, resolve
from firecircle.voices.hosted.model_lists import ModelList
from firecircle.voices.hosted.providers import PROVIDERS
from tests.cli.running import endpoint
from tests.loopback import Answer, ChatRequest, LoopbackServer, Script, as_json, completion, failure

PROMPT = MultiNeutrosophicPrompt(user="as we agreed earlier, go on")
FALLBACKS = ("anthropic/claude-sonnet-4.6", "qwen/qwen3-235b-a22b-2507", "deepseek/deepseek-v3.2")
"""Who sits where no list can be had."""
Host = Callable[..., LoopbackServer]


def listing(*models: str, **prices: str) -> Answer:
    """A list in the shape of OpenRouter's: each model is a day older than the one before."""
    pricing = {"prompt": "0.000003", "completion": "0.000015", **prices}
    entries = [
        {
            "id": model,
            "created": 1_770_000_000 - 86_400 * place,
            "context_length": 200_000,
            "pricing": pricing,
        }
        for place, model in enumerate(models)
    ]
    return as_json({"data": entries})


TODAY = listing(
    "anthropic/claude-sonnet-6",
    "anthropic/claude-sonnet-6:thinking",
    "anthropic/claude-sonnet-4.6",
    "qwen/qwen5-coder-480b-a35b",
    "qwen/qwen4-480b-a30b-instruct",
    "qwen/qwen3-235b-a22b-2507",
    "qwen/qwen5-8b",
    "deepseek/deepseek-r3",
    "deepseek/deepseek-v5-base",
    "deepseek/deepseek-v5",
    "deepseek/deepseek-v3.2",
    "meta-llama/llama-5",
)
NEWEST = ("anthropic/claude-sonnet-6", "qwen/qwen4-480b-a30b-instruct", "deepseek/deepseek-v5")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """An endpoint with this list and these answers in the place of OpenRouter."""
    with ExitStack() as opened:

        def serve(models: Answer, script: Script = lambda _: completion()) -> LoopbackServer:
            server = opened.enter_context(endpoint(script))
            server.listing = models
            monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test-key")
            monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
            return server

        yield serve


def held(**settings: Any) -> FireCircleResult:
    config = FireCircleConfig(**{"max_rounds": 2, "seed": 1, **settings})
    return asyncio.run(fire_circle_evaluate(PROMPT, config))


def asked(server: LoopbackServer) -> list[str]:
    return sorted({request.model for request in server.requests})


def kept_file() -> Path:
    (file,) = user_folder("cache").glob("models-*.json")
    return file


def test_the_default_circle_sits_with_today_s_models(host: Host) -> None:
    server = host(TODAY)
    result = held()
    assert result.config.models == NEWEST
    assert asked(server) == sorted(NEWEST)
    assert {call.model for call in result.calls} == set(NEWEST)
    assert dict(zip(NEWEST, DEFAULT_MODELS, strict=True)) == result.config.families
    reread = FireCircleResult.model_validate_json(result.model_dump_json())
    assert reread == result
    assert asyncio.run(replay_circle(reread)).consensus == result.consensus


def test_the_default_circle_has_three_lineages_of_which_two_suffice(host: Host) -> None:
    assert len({characteristics_of(family).provider_lineage for family in DEFAULT_MODELS}) == 3
    for absent in NEWEST:
        host(TODAY, lambda request, absent=absent: failure(500) if request.model == absent else completion())
        result = held(timeout_per_round=2)
        assert result.consensus is not None
        assert [lost.model for lost in result.failures] == [absent]


def test_an_alias_of_the_newest_is_used_where_it_is_listed(host: Host) -> None:
    aliases = ("~anthropic/claude-sonnet-latest", "~deepseek/deepseek-pro-latest")
    server = host(
        listing(*NEWEST, *aliases),
        lambda request: as_json({**json.loads(completion().body), "model": f"{request.model}-20261101"}),
    )
    result = held()
    assert result.config.models == (aliases[0], NEWEST[1], aliases[1])
    assert asked(server) == sorted((aliases[0], NEWEST[1], aliases[1]))
    assert {call.answered_by for call in result.calls} == {
        f"{model}-20261101" for model in result.config.models
    }


def test_the_list_is_asked_for_once_a_day(host: Host) -> None:
    server = host(TODAY)
    held()
    held()
    asyncio.run(PromptGuard().evaluate(user="hello", mode="single"))
    assert server.lists_told == 1
    kept = json.loads(kept_file().read_text())
    kept_file().write_text(json.dumps({**kept, "asked_at": kept["asked_at"] - 23 * 3600}))
    held()
    assert server.lists_told == 1
    server.listing = listing("anthropic/claude-sonnet-7", *NEWEST)
    kept_file().write_text(json.dumps({**kept, "asked_at": kept["asked_at"] - 25 * 3600}))
    assert held().config.models[0] == "anthropic/claude-sonnet-7"
    assert server.lists_told == 2


def test_many_circles_at_once_ask_for_it_once(host: Host) -> None:
    server = host(TODAY)

    async def judge() -> None:
        guard = PromptGuard()
        await asyncio.gather(*(guard.evaluate(user=f"hello {n}", mode="parallel") for n in range(8)))

    asyncio.run(judge())
    assert server.lists_told == 1


@pytest.mark.parametrize(
    "down",
    [
        failure(500),
        failure(401),
        Answer(b"<html>maintenance</html>", content_type="text/html"),
        Answer(b"[" * 100_000),
        as_json({"data": "none"}),
        as_json({"data": [{"name": "x"}, 7, None, {"id": ""}, {"id": "\x1b[31m"}]}),
        as_json([]),
        Answer(delivery="reset"),
        Answer(b'{"data": [{"id": "anthropic/claude-sonnet-9"}]}', delivery="half"),
    ],
)
def test_without_a_list_the_catalog_s_newest_sit(host: Host, down: Answer) -> None:
    server = host(down)
    assert held().config.models == FALLBACKS
    told = server.lists_told
    held()
    assert server.lists_told == told  # it is not asked for again at once


def test_a_list_with_strange_figures_is_still_a_list(host: Host) -> None:
    entries = [
        {
            "id": "anthropic/claude-sonnet-6",
            "created": "soon",
            "context_length": -1,
            "pricing": {"prompt": "-1"},
        },
        {"id": "anthropic/claude-sonnet-5.5", "created": True, "pricing": "free", "context_length": "many"},
        {"id": "anthropic/claude-sonnet-7", "expiration_date": "2020-01-01"},
        {"id": "anthropic/claude-sonnet-8" + "x" * 1000},
        {"id": "openai:claude-sonnet-9"},
        {"id": "local:claude-sonnet-9"},
        {"id": "anthropic/claude-sonnet-9#2"},
        {"id": "anthropic/claude-sonnet-9 \u202e"},
    ]
    host(as_json({"data": entries}))
    assert held().config.models[0] == "anthropic/claude-sonnet-6"


def test_models_that_are_named_by_their_ids_need_no_list(host: Host) -> None:
    server = host(TODAY)
    assert held(models=FALLBACKS).config.families == {}
    assert server.lists_told == 0
    assert not list(user_folder("cache").glob("models-*.json"))


@pytest.mark.parametrize(
    "unknown",
    [
        as_json({"error": {"message": "{model} is not a valid model ID", "code": 400}}, 400),
        as_json(
            {"error": {"code": "model_not_found", "message": "The model `{model}` does not exist."}}, 404
        ),
    ],
)
def test_a_model_that_the_provider_does_not_know_gives_its_seat_to_the_next(
    host: Host, unknown: Answer
) -> None:
    retired = FALLBACKS[0]

    def script(request: ChatRequest) -> Answer:
        if request.model != retired:
            return completion()
        return Answer(unknown.body.replace(b"{model}", retired.encode()), unknown.status)

    server = host(failure(503), script)
    result = held()
    assert result.failures == ()
    successor = seatable_families()["family:anthropic-sonnet"].known[1]
    assert asked(server) == sorted((retired, successor, *FALLBACKS[1:]))
    calls = {(call.model, call.asked_id) for call in result.calls}
    assert calls == {(retired, successor), (FALLBACKS[1], None), (FALLBACKS[2], None)}
    assert result.stand_ins == {retired: successor}
    assert asyncio.run(replay_circle(result)).stand_ins == result.stand_ins
    # The next circle knows.
    server.requests.clear()
    assert held().config.models == (successor, *FALLBACKS[1:])
    assert retired not in asked(server)


def test_voices_apart_tell_who_was_asked_in_their_place(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    retired = FALLBACKS[0]
    host(
        failure(503),
        lambda request: (
            failure(400, f"{retired} is not a valid model ID") if request.model == retired else completion()
        ),
    )
    assert run(("evaluate", "hello", "--mode", "parallel", "--no-save")) in (0, 1)
    successor = seatable_families()["family:anthropic-sonnet"].known[1]
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        f"{retired} is gone: its provider does not know it, so {successor} was asked in its place" in printed
    )


def test_where_nobody_of_a_family_is_left_the_voice_is_lost(host: Host) -> None:
    host(
        TODAY,
        lambda request: (
            failure(404, f"model {request.model} does not exist")
            if "claude" in request.model
            else completion()
        ),
    )
    result = held()
    (lost,) = result.failures
    assert lost.model == NEWEST[0]
    assert "does not exist" in lost.message
    assert result.consensus is not None


def test_a_caller_answers_for_the_catalog_s_newest_and_no_list_is_asked_for(host: Host) -> None:
    server = host(TODAY)
    heard: list[str] = []

    async def caller(model: str, _: object) -> str:
        heard.append(model)
        return '{"truth": 0.9, "indeterminacy": 0.1, "falsehood": 0.1, "verdict": "no_violation"}'

    asyncio.run(fire_circle_evaluate(PROMPT, FireCircleConfig(), caller=caller))
    assert set(heard) == set(FALLBACKS)
    assert server.lists_told == 0


def test_reserves_chair_clones_and_classifier_may_be_families(host: Host) -> None:
    server = host(TODAY)
    result = held(
        models=("family:anthropic-sonnet", "family:anthropic-sonnet#2", "family:deepseek-chat"),
        reserves=("family:qwen-large",),
        empty_chair_model="family:anthropic-sonnet#2",
        empty_chair_rotation=False,
        pattern_classification="llm",
        classifier_model="family:qwen-large",
    )
    sonnet, qwen, deepseek = NEWEST
    assert result.config.models == (sonnet, f"{sonnet}#2", deepseek)
    assert result.config.reserves == (qwen,)
    assert result.config.empty_chair_model == f"{sonnet}#2"
    assert result.config.classifier_model == qwen
    assert set(asked(server)) <= set(NEWEST)


def test_a_pattern_may_be_classified_by_a_family(host: Host) -> None:
    server = host(TODAY)
    asyncio.run(classify_pattern_llm("continues a conversation that never was", "family:qwen-large"))
    assert asked(server) == [NEWEST[1]]


def test_a_family_and_its_model_are_the_same_voice(host: Host) -> None:
    host(TODAY)
    with pytest.raises(
        ConfigError, match=f"family:anthropic-sonnet is {NEWEST[0]} today, which is named too"
    ):
        held(models=("family:anthropic-sonnet", NEWEST[0], "family:qwen-large"))


def test_an_unknown_family_names_the_known_ones() -> None:
    with pytest.raises(
        UnknownModelError, match=r"there is no family:sonnet; the families are family:anthropic-"
    ):
        FireCircleConfig(models=("family:sonnet", "family:qwen-large"))
    config = EvaluationConfig(models=("family:sonnet",))
    with pytest.raises(UnknownModelError, match="there is no family:sonnet"):
        asyncio.run(PromptGuard(config).evaluate(user="hi"))


def test_a_provider_of_its_own_names_resolves_its_own_models(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = host(as_json({"data": [{"id": "claude-sonnet-4-5-20250929"}, {"id": "claude-sonnet-4-6"}]}))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    monkeypatch.setenv("FIRECIRCLE_ANTHROPIC_BASE_URL", server.base_url)
    config = EvaluationConfig(models=("family:anthropic-sonnet",), provider="anthropic")
    asyncio.run(PromptGuard(config).evaluate(user="hi"))
    assert asked(server) == ["claude-sonnet-4-6"]
    lonely = EvaluationConfig(models=("family:qwen-large",), provider="anthropic")
    with pytest.raises(ConfigError, match="anthropic lists no model of family:qwen-large"):
        asyncio.run(PromptGuard(lonely).evaluate(user="hi"))


def test_every_family_seats_models_of_its_own() -> None:
    for name, family in seatable_families().items():
        assert family.known, name
        for model in (*family.known, *family.latest):
            assert family_of(model) is family, model
        assert family_of(name) is family


def test_the_list_s_price_is_taken_along(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host(listing(*NEWEST, prompt="0.000001", completion="0.000002"))
    assert run(("evaluate", "hello", "--dry-run", "--json")) == 0
    estimate = json.loads(capsys.readouterr().out)
    of_sonnet = estimate["by_voice"][NEWEST[0]]
    expected = (of_sonnet["tokens_in"] * 1.0 + of_sonnet["tokens_out"] * 2.0) / 1e6
    assert of_sonnet["cost_usd"] == pytest.approx(expected)


def test_the_key_is_not_kept_with_the_list(host: Host) -> None:
    host(TODAY)
    held()
    assert "sk-test-key" not in kept_file().read_text()


def test_a_cache_that_cannot_be_written_or_read_stops_nobody(
    host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = host(TODAY)
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert held().config.models == NEWEST
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    held()
    kept_file().write_text('{"base_url": 7')
    assert held().config.models == NEWEST
    assert server.lists_told == 3


PLAN = """
[[datasets]]
path = "examples"
limit = 1
[circle]
models = ["family:anthropic-sonnet", "family:qwen-large", "family:deepseek-chat"]
max_rounds = 2
[[arms]]
name = "circle"
kind = "fire_circle"
[[arms]]
name = "without"
kind = "leave_one_out"
[[arms]]
name = "clones"
kind = "clones"
model = "family:qwen-large"
"""


@contextmanager
def unseen(_: RunFolder) -> Iterator[Follower]:
    yield lambda tally: None


def test_a_run_of_the_lab_keeps_to_the_models_it_began_with(host: Host, tmp_path: Path) -> None:
    server = host(TODAY)
    plan = plan_of(PLAN, "plan.toml")
    begun = open_run(plan, PLAN, tmp_path, out=tmp_path / "run")
    assert begun.about.families == dict(zip(DEFAULT_MODELS, NEWEST, strict=True))
    assert begun.about.arms == ("circle", *(f"without {model}" for model in NEWEST), "clones")
    server.listing = listing("anthropic/claude-sonnet-7", *NEWEST)
    for file in user_folder("cache").glob("models-*.json"):
        file.unlink()
    again = open_run(plan, PLAN, tmp_path, out=tmp_path / "run")
    state = asyncio.run(complete(again, unseen))
    assert state.tally.complete
    assert asked(server) == sorted(NEWEST)
    other = open_run(plan, PLAN, tmp_path, out=tmp_path / "other")
    assert other.about.families["family:anthropic-sonnet"] == "anthropic/claude-sonnet-7"


def vendors_list(*entries: dict[str, object]) -> ModelList:
    return ModelList(base_url="x", models=_models_in(json.dumps({"data": entries}).encode()))


def test_a_vendor_s_own_list_seats_the_newest_that_judges() -> None:
    claude = vendors_list(
        {"id": "claude-sonnet-4-20250514", "created_at": "2025-05-22T00:00:00Z"},
        {"id": "claude-sonnet-4-6", "created_at": "2026-02-17T00:00:00Z"},
    )
    assert resolve("family:anthropic-sonnet", PROVIDERS["anthropic"], claude).model == "claude-sonnet-4-6"
    undated = vendors_list({"id": "claude-sonnet-4-20250514"}, {"id": "claude-sonnet-4-6"})
    assert resolve("family:anthropic-sonnet", PROVIDERS["anthropic"], undated).model == "claude-sonnet-4-6"
    grok = vendors_list({"id": "grok-imagine-image"}, {"id": "grok-4.3"}, {"id": "grok-4-0709"})
    assert resolve("family:xai-grok", PROVIDERS["xai"], grok).model == "grok-4.3"
    gemini = vendors_list({"name": "models/gemini-2.5-pro-preview-tts"}, {"name": "models/gemini-2.5-pro"})
    seated = resolve("family:google-gemini-pro", PROVIDERS["google"], gemini)
    assert seated.model == "gemini-2.5-pro"
    assert not any("tts" in name for name in seated.stand_ins)


def test_without_a_list_the_vendor_s_spelling_is_asked() -> None:
    seated = resolve("family:anthropic-sonnet", PROVIDERS["anthropic"], ModelList(base_url="x"))
    assert seated.model == "claude-sonnet-4-6"
