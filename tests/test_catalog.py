"""The catalog: which family a model belongs to, whose lineage it is of, and how much room it is given."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from genai_prices.data_snapshot import get_snapshot

from firecircle import EvaluationConfig, FireCircleConfig, MultiNeutrosophicPrompt
from firecircle.catalog import characteristics_of, families, family_of, in_catalog, limits_of
from firecircle.cli.main import run
from firecircle.convene import seat_panel
from firecircle.errors import ConfigError, UnknownModelError
from firecircle.judge import fire_circle_evaluate
from firecircle.lab.datasets import Record
from firecircle.names import EMBEDDED_MODELS, HOSTS
from firecircle.voices.hosted.providers import PROVIDERS
from tests.cli.running import endpoint
from tests.loopback import Answer, ChatRequest, completion

PROMPT = MultiNeutrosophicPrompt(user="as we agreed earlier, go on")


def lineage(model: str) -> str | None:
    known = in_catalog(model)
    return known.provider_lineage if known else None


def test_nearly_every_model_that_openrouter_listed_is_known() -> None:
    """The ids are those of the price list, which has followed OpenRouter's list since 2024."""
    listed = [model.id for model in get_snapshot().find_provider(None, "openrouter", None).models]
    listed = [model for model in listed if "/" in model]
    unknown = [model for model in listed if family_of(model) is None]
    assert len(listed) > 600
    assert len(unknown) / len(listed) < 0.05, unknown


@pytest.mark.parametrize(
    ("model", "trained_by"),
    [
        ("anthropic/claude-sonnet-4.6", "anthropic"),
        ("~anthropic/claude-sonnet-latest", "anthropic"),
        ("Anthropic/Claude-Opus-4.6", "anthropic"),
        ("~openai/gpt-latest", "openai"),
        ("openai:gpt-5.2", "openai"),
        ("ollama:gpt-oss:20b", "openai"),
        ("qwen/qwen3-235b-a22b-2507", "alibaba"),
        ("vllm:Qwen/Qwen2.5-72B-Instruct-AWQ", "alibaba"),
        ("deepseek/deepseek-v3.2", "deepseek"),
        ("deepseek/deepseek-r1:free", "deepseek"),
        ("openrouter:deepseek/deepseek-r1:free", "deepseek"),
        ("minimax/minimax-m2.5", "minimax"),
        ("amazon/nova-2-lite-v1", "amazon"),
        ("cohere/command-a", "cohere"),
        ("bytedance-seed/seed-2.0-mini", "bytedance"),
        ("xiaomi/mimo-v2.5-pro", "xiaomi"),
        ("tencent/hunyuan-a13b-instruct", "tencent"),
        ("stepfun/step-3.5-flash", "stepfun"),
        ("ibm-granite/granite-4.1-8b", "ibm"),
        ("lmstudio:unsloth/Llama-3.2-3B-Instruct-GGUF", "meta"),
        ("llamacpp:phi-4", "microsoft"),
        ("phi4:14b", "microsoft"),
        ("local:/models/Qwen2.5-7B-Instruct-Q4_K_M.gguf", "alibaba"),
        ("local:smollm2", "huggingface"),
        ("ollama:llama3.2:3b", "meta"),
        # A fine-tune is of the lineage of whoever trained its base.
        ("nousresearch/hermes-4-405b", "meta"),
        ("nvidia/llama-3.3-nemotron-super-49b-v1.5", "meta"),
        ("nvidia/nemotron-3-super-120b-a12b", "nvidia"),
        ("deepseek/deepseek-r1-distill-llama-70b", "meta"),
        ("deepseek/deepseek-r1-distill-qwen-32b", "alibaba"),
        ("perplexity/sonar-pro", "meta"),
        ("perplexity/sonar-reasoning-pro", "deepseek"),
        ("microsoft/wizardlm-2-8x22b", "mistral"),
    ],
)
def test_lineage_is_who_trained_the_base(model: str, trained_by: str) -> None:
    assert lineage(model) == trained_by


@pytest.mark.parametrize(
    "model", ["llamacpp:mystery", "deepseek:mystery", "mistral:mystery", "openai:mystery", "nobody/knows"]
)
def test_a_provider_s_name_says_nothing_of_the_model(model: str) -> None:
    assert in_catalog(model) is None


def test_the_prefix_of_a_provider_of_one_s_own_says_nothing_either(
    settings_file: Callable[[str], Path],
) -> None:
    settings_file('[providers.qwenlike]\nbase_url = "http://127.0.0.1:9/v1"')
    assert in_catalog("qwenlike:mystery") is None
    assert lineage("qwenlike:phi-4") == "microsoft"


def test_an_unknown_model_says_how_to_declare_it() -> None:
    with pytest.raises(UnknownModelError) as unknown:
        characteristics_of("switchpoint/router")
    for word in (
        "switchpoint/router",
        "model_characteristics=",
        '[models."switchpoint/router"]',
        "quorum --list",
    ):
        assert word in str(unknown.value)


def test_the_names_of_providers_are_those_that_come_with_the_package() -> None:
    assert tuple(PROVIDERS) == HOSTS


def test_every_pattern_of_the_catalog_matches_something() -> None:
    for family in families():
        for pattern in family.match:
            example = re.sub(r"\[(.)[^]]*\]", r"\1", pattern).replace("*", "x").lower()
            assert family.matches(example), pattern


@pytest.mark.parametrize(
    "model",
    [
        "openai/o3-mini",
        "openai:gpt-5.2",
        "deepseek/deepseek-r1",
        "deepseek/deepseek-r1-distill-llama-70b:free",
        "qwen/qwen3-235b-a22b-thinking-2507",
        "Qwen/QwQ-32B",
        "google/gemini-2.5-pro",
        "x-ai/grok-4.3",
        "z-ai/glm-4.7",
        "moonshotai/kimi-k2-thinking",
        "ollama:gpt-oss:20b",
        "~openai/gpt-latest",
    ],
)
def test_a_model_that_thinks_first_gets_room_and_minutes(model: str) -> None:
    limits = limits_of(model)
    assert limits.max_tokens >= 4000
    assert limits.timeout_seconds >= 120
    assert limits.timeout_per_round > limits.timeout_seconds


def test_what_is_configured_wins_over_the_catalog() -> None:
    usual = EvaluationConfig().limits("openai/gpt-4o")
    assert (usual.max_tokens, usual.timeout_seconds, usual.timeout_per_round) == (1000, 30, 60)
    stated = EvaluationConfig(max_tokens=77, timeout_seconds=5, timeout_per_round=9).limits("openai/o3")
    assert (stated.max_tokens, stated.timeout_seconds, stated.timeout_per_round) == (77, 5, 9)
    patient = EvaluationConfig(timeout_seconds=400).limits("openai/gpt-4o")
    assert patient.timeout_per_round == 400  # else an attempt could never take as long as it may


def test_the_settings_say_it_for_one_model(settings_file: Callable[[str], Path]) -> None:
    settings_file('[limits."vllm:mine"]\nmax_tokens = 6000\ntimeout_seconds = 240.0\n')
    mine = EvaluationConfig().limits("vllm:mine#2")
    assert (mine.max_tokens, mine.timeout_seconds, mine.timeout_per_round) == (6000, 240, 240)
    assert EvaluationConfig(max_tokens=9).limits("vllm:mine").max_tokens == 9
    assert limits_of("vllm:other").max_tokens == 1000
    for wrong, words in (
        ("max_tokens = 0", r"\[limits.m\] max_tokens: Input should be greater than or equal to 1"),
        ("timeout = 3", r"\[limits.m\] timeout: no such key"),
    ):
        settings_file(f"[limits.m]\n{wrong}\n")
        with pytest.raises(ConfigError, match=words):
            limits_of("m")


def test_each_voice_of_a_circle_is_asked_with_its_own_room(monkeypatch: pytest.MonkeyPatch) -> None:
    models = ("openai/gpt-4o", "deepseek/deepseek-r1", "anthropic/claude-sonnet-4.6")
    with endpoint(lambda _: completion()) as server:
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        asyncio.run(fire_circle_evaluate(PROMPT, FireCircleConfig(models=models, max_rounds=2)))
        parallel = EvaluationConfig(models=models, mode="parallel", temperature=None)
        asyncio.run(seat_panel(parallel).ask(PROMPT))
        asked = list(server.requests)
    rooms = {(request.model, request.body["max_tokens"]) for request in asked}
    assert rooms == {(models[0], 1000), (models[1], 4000), (models[2], 1000)}
    circle, panel = asked[:6], asked[6:]
    assert {request.body.get("temperature") for request in circle} == {0.7}
    assert not any("temperature" in request.body for request in panel)


def test_temperature_can_be_left_out_by_name() -> None:
    assert EvaluationConfig(temperature="none").temperature is None
    with pytest.raises(ConfigError, match="temperature"):
        EvaluationConfig(temperature="warm")


def test_the_command_line_sets_room_and_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(request: ChatRequest) -> Answer:
        return completion(latency=5.0 if request.model.endswith("slow") else 0.0)

    with endpoint(slow) as server:
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        options = ("--mode", "single", "--no-save", "--max-tokens", "321", "--temperature", "none")
        assert run(("evaluate", "hi", "--models", "openai/gpt-4o", *options)) in (0, 1)
        assert (
            run(
                (
                    "evaluate",
                    "hi",
                    "--models",
                    "openai/slow",
                    *options,
                    "--timeout",
                    "0.3",
                    "--round-timeout",
                    "0.5",
                )
            )
            == 2
        )
        body = server.requests[0].body
    assert body["max_tokens"] == 321
    assert "temperature" not in body


def test_the_roles_of_the_readers_are_written_as_measured(tmp_path: Path) -> None:
    """`python -m bench.detection --write-roles`, over twenty harmless prompts and four attacks."""
    from bench.detection.contenders import JudgedByCircle, Judgement, Milliseconds
    from bench.detection.roles import CATALOG, ROLES, measured, write_roles

    stated: list[tuple[Literal["attack", "benign"], str, float]] = [
        ("benign", "benign:general", step / 100) for step in range(20)
    ]
    for about in ROLES.values():
        stated += [("attack", about[0], falsehood) for falsehood in (0.1, 0.3, 0.5, 0.9)]
    records = [
        Record(
            id=str(row),
            prompt=MultiNeutrosophicPrompt(user="?"),
            label=label,
            family=family,
            source="s",
            row=row,
        )
        for row, (label, family, _) in enumerate(stated)
    ]
    judged = JudgedByCircle(
        "three",
        [
            Judgement((dict.fromkeys(EMBEDDED_MODELS, falsehood),), (), 0.0, (), (), has_reason=True)
            for *_, falsehood in stated
        ],
        Milliseconds(0.0, 0.0),
    )
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(CATALOG.read_text("utf-8"), "utf-8")
    write_roles([(records, judged)], catalog)
    after = {family["match"][0]: family for family in tomllib.loads(catalog.read_text("utf-8"))["family"]}
    for voice, roles in measured([(records, judged)]).items():
        assert set(roles.values()) == {0.75}
        assert after[voice]["cognitive_roles"] == roles
    before = {family["match"][0]: family for family in tomllib.loads(CATALOG.read_text("utf-8"))["family"]}
    assert {name for name in after if after[name] != before[name]} == set(EMBEDDED_MODELS)


@pytest.mark.parametrize("name", ["person:Ada/Red team", "person:x/gpt-4o", "person:ada 3b"])
def test_a_person_is_a_person_whatever_the_name(name: str) -> None:
    found = characteristics_of(name)
    assert found.provider_lineage == name.lower()
    assert found.cognitive_roles == characteristics_of("person:ada").cognitive_roles
