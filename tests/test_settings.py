"""`firecircle.toml`: where it is found, what it may say, and how a mistake in it is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from firecircle import (
    ConfigError,
    FireCircleConfig,
    FireCircleResult,
    ModelCharacteristics,
    fire_circle_evaluate,
)
from firecircle.catalog import characteristics_of
from firecircle.cli.main import run
from firecircle.settings import FILE_VARIABLE, current_settings, user_folder
from firecircle.voices.hosted.voice import hosted_voice
from tests.scripted import PROMPT, Script

Write = Callable[[str], Path]

DECLARED = """
[models."vllm:mine"]
provider_lineage = "own"
alignment_style = "fine-tuned"
confidence = 0.9
cognitive_roles = { temporal_reasoning = 0.9, cross_layer_analysis = 0.8, pattern_recognition = 0.5 }
"""


def test_without_a_file_nothing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(FILE_VARIABLE)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    assert current_settings().source is None
    assert current_settings().providers == {}


def test_the_named_file_wins_over_the_working_folder_s_over_the_user_s(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    places = [tmp_path / "users" / "firecircle", tmp_path / "work", tmp_path / "elsewhere"]
    for place in places:
        place.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "users"))
    monkeypatch.delenv(FILE_VARIABLE)

    (places[0] / "firecircle.toml").write_text("[circle]\nseed = 0\n")
    monkeypatch.chdir(places[2])
    assert current_settings().circle == {"seed": 0}

    (places[1] / "firecircle.toml").write_text("[circle]\nseed = 1\n")
    monkeypatch.chdir(places[1])
    assert run(["trust"]) == 0
    assert current_settings().circle == {"seed": 1}

    (places[2] / "named.toml").write_text("[circle]\nseed = 2\n")
    monkeypatch.setenv(FILE_VARIABLE, str(places[2] / "named.toml"))
    assert current_settings().circle == {"seed": 2}

    monkeypatch.setenv(FILE_VARIABLE, "")
    assert current_settings().circle == {}


@pytest.mark.parametrize(
    ("kind", "variable", "folder"),
    [("config", "XDG_CONFIG_HOME", ".config"), ("cache", "XDG_CACHE_HOME", ".cache")],
)
def test_the_user_s_folders(
    kind: str, variable: str, folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(variable, raising=False)
    assert user_folder(kind) == tmp_path / folder / "firecircle"  # type: ignore[arg-type]
    monkeypatch.setenv(variable, "/x")
    assert user_folder(kind) == Path("/x/firecircle")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("colour = 1", "[colour]: no such table"),
        ("source = 'x'", "[source]: no such table"),
        ("providers = 5", "[providers]: "),
        ("[providers.a]\nbase_url = 5", "[providers.a] base_url: Input should be a valid string"),
        ("[providers.a]\nbase = 'x'", "[providers.a] base: no such key"),
        ("[providers.'A b']\nbase_url = 'http://x/v1'", "[providers] A b: is not the name of a provider"),
        ("[providers.a]\nstructured_output = 'on'", "[providers.a] structured_output: "),
        ("[providers.a]\nconcurrency = { start = 0 }", "[providers.a.concurrency] start: "),
        ("[providers.a]\nconcurrency = { start = 9, most = 3 }", "[providers.a.concurrency] most: is less"),
        ("[providers.a]\nconcurrency = { start = '9' }", "[providers.a.concurrency] start: "),
        ("[models.'vllm:m']\nprovider_lineage = 'x'", '[models."vllm:m"] cognitive_roles: is missing'),
        (
            "[models.'vllm:m']\nprovider_lineage = 'x'\ncognitive_roles = { time = true }",
            '[models."vllm:m".cognitive_roles] time: ',
        ),
        ("[prices.'a:b']\ninput = 1\noutput = true", '[prices."a:b"] output: Input should be a valid number'),
        ("[prices.'a:b']\ninput = -1\noutput = 1", '[prices."a:b"] input: '),
        ("[prices.'a:b']\ninput = nan\noutput = 1", '[prices."a:b"] input: '),
        ("[prices.'a:b']\ninput = 1", '[prices."a:b"] output: is missing'),
        ("[circle", "is not TOML: "),
    ],
)
def test_a_mistake_is_one_line_with_file_table_and_key(
    text: str, complaint: str, settings_file: Write
) -> None:
    path = settings_file(text)
    with pytest.raises(ConfigError) as raised:
        current_settings()
    assert str(raised.value).startswith(f"{path}: {complaint}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "api_key = 'sk-canary'",
        "[providers.a]\napi_key = 'sk-canary'",
        "[providers.a]\nkey = 'sk-canary'",
        "[providers.a]\nkey_variable = 'sk-canary'",
        "[providers.a.headers]\nAuthorization = 'Bearer sk-canary'",
        "[providers.a.headers]\nX-Api-Key = 'sk-canary'",
        "[providers.a]\nbase_url = ['sk-canary']",
        "[circle]\napi_key = 'sk-canary'",
    ],
)
def test_a_key_in_the_file_is_refused_and_not_shown(text: str, settings_file: Write) -> None:
    settings_file(text)
    with pytest.raises(ConfigError) as raised:
        current_settings()
    assert "sk-canary" not in str(raised.value)
    if "ariable" not in text and "base_url" not in text:
        assert "name that with key_variable" in str(raised.value)


def test_a_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for content, complaint in ((b"caf\xe9", "not UTF-8"), (b"#" * 2_000_000, "larger than")):
        path = tmp_path / f"{complaint[:3]}.toml"
        path.write_bytes(content)
        monkeypatch.setenv(FILE_VARIABLE, str(path))
        with pytest.raises(ConfigError, match=complaint):
            current_settings()
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "missing.toml"))
    with pytest.raises(ConfigError, match=r"missing\.toml: cannot read it: No such file"):
        current_settings()
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path))
    with pytest.raises(ConfigError, match="cannot read it"):
        current_settings()


# -- providers -----------------------------------------------------------------------------------------


def test_a_provider_of_one_s_own(settings_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_file("""
        [providers.my-gpu]
        base_url = "http://gpu:9000/v1/"
        headers = { X-Team = "red" }
        concurrency = { start = 2, most = 4 }
        structured_output = "off"
        """)
    config = FireCircleConfig.embedded()
    provider = hosted_voice("my-gpu:llama", config).provider
    assert (provider.base_url, provider.headers) == ("http://gpu:9000/v1", {"X-Team": "red"})
    assert (provider.concurrency.start, provider.concurrency.most) == (2, 4)
    assert provider.structured_output == "off"
    monkeypatch.setenv("FIRECIRCLE_MY_GPU_BASE_URL", "http://other:1/v1")
    assert hosted_voice("my-gpu:llama", config).provider.base_url == "http://other:1/v1"


def test_a_known_provider_can_be_changed_in_part(settings_file: Write) -> None:
    settings_file("[providers.ollama]\nbase_url = 'http://desk:11434/v1'\n")
    provider = hosted_voice("ollama:m", FireCircleConfig.embedded()).provider
    assert (provider.base_url, provider.key_variable, provider.structured_output) == (
        "http://desk:11434/v1",
        None,
        "auto",
    )


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ("[providers.mine]\n", "base_url: is missing"),
        ("[providers.local]\nbase_url='http://x/v1'", "is a name of voices that are not hosted"),
        ("[providers.mine]\nbase_url='gpu:8000'", "base_url: must be an address"),
        ("[providers.mine]\nbase_url='http://me:pa55@gpu/v1'", "base_url: carries a user name"),
        ("[providers.mine]\nbase_url='http://x/v1'\nheaders={A='é'}", "headers: 'A' has characters"),
    ],
)
def test_a_provider_that_cannot_be(table: str, complaint: str, settings_file: Write) -> None:
    path = settings_file(table)
    with pytest.raises(ConfigError) as raised:
        hosted_voice("ollama:m", FireCircleConfig.embedded())
    assert str(raised.value).startswith(f"{path}: [providers.")
    assert complaint in str(raised.value)
    assert "pa55" not in str(raised.value)


# -- characteristics -----------------------------------------------------------------------------------


def test_the_catalog_knows_a_declared_model(settings_file: Write) -> None:
    settings_file(DECLARED)
    assert characteristics_of("vllm:mine").provider_lineage == "own"
    assert characteristics_of("vllm:mine#2").model_id == "vllm:mine#2"
    config = FireCircleConfig(models=("vllm:mine", "vllm:mine#2", "qwen/qwen-2.5-72b"))
    assert config.characteristics("vllm:mine#2").cognitive_roles["temporal_reasoning"] == 0.9


def test_code_wins_over_the_file_and_the_file_over_the_catalog(settings_file: Write) -> None:
    settings_file(DECLARED.replace("vllm:mine", "qwen/qwen-2.5"))
    assert characteristics_of("qwen/qwen-2.5").provider_lineage == "own"
    told = ModelCharacteristics("qwen/qwen-2.5", {"temporal_reasoning": 0.9}, "told")
    config = FireCircleConfig(
        models=("qwen/qwen-2.5", "anthropic/claude-sonnet-4"), model_characteristics={"qwen/qwen-2.5": told}
    )
    assert config.characteristics("qwen/qwen-2.5").provider_lineage == "told"


def test_a_role_that_does_not_exist_names_file_and_table(settings_file: Write) -> None:
    path = settings_file(DECLARED.replace("temporal_reasoning", "telepathy"))
    with pytest.raises(ConfigError) as raised:
        characteristics_of("vllm:mine")
    assert str(raised.value).startswith(
        f'{path}: [models."vllm:mine"] cognitive_roles: no such role telepathy'
    )


async def test_a_result_can_be_read_where_the_file_is_not(
    settings_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_file(DECLARED)
    config = FireCircleConfig(models=("vllm:mine", "anthropic/claude-sonnet-4"), max_rounds=1)
    script = Script({"vllm:mine": [0.2], "anthropic/claude-sonnet-4": [0.3]})
    result = await fire_circle_evaluate(PROMPT, config, caller=script)
    monkeypatch.setenv(FILE_VARIABLE, "")
    assert FireCircleResult.model_validate_json(result.model_dump_json()) == result
