"""A mistake is data: where it is, what it is, and the way out; its line is written from that."""

from __future__ import annotations

import copy
import pickle

import pytest
from pydantic import Field, ValidationError

from firecircle import ConfigError, FireCircleConfig, MultiNeutrosophicPrompt, PromptError
from firecircle.cli.trouble import in_options
from firecircle.errors import MissingKeyError, VoiceError
from firecircle.shapes import Declaration, Shape, config_error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ConfigError("models", "too few", "name more"), "models: too few; name more"),
        (ConfigError("models", "too few"), "models: too few"),
        (ConfigError(None, "too few", "name more"), "too few; name more"),
        (ConfigError(None, "too few"), "too few"),
        (ConfigError("seed", "is none", shape="Plan"), "Plan.seed: is none"),
        (ConfigError("seed", "is none").within("line 3").within("a.jsonl"), "a.jsonl: line 3: seed: is none"),
        (
            ConfigError("seed", "is none", "x", shape="Plan").in_table("arms.a").within("plan.toml"),
            "plan.toml: [arms.a] seed: is none; x",
        ),
        (ConfigError("seed", "is none", shape="Plan").renamed("--seed"), "--seed: is none"),
        (ConfigError("seed", "is none", "a").advising("b"), "seed: is none; b"),
    ],
)
def test_the_line_is_written_from_the_parts(error: ConfigError, line: str) -> None:
    assert str(error) == line
    assert str(copy.copy(error)) == line
    assert str(pickle.loads(pickle.dumps(error))) == line


def test_context_is_added_to_a_copy_of_the_same_kind() -> None:
    error = PromptError("user", "is empty", "write something")
    placed = error.within("row 7")
    assert (type(placed), placed.field, placed.message, placed.remedy) == (
        PromptError,
        "user",
        "is empty",
        "write something",
    )
    assert str(error) == "user: is empty; write something"


def test_errors_of_the_engine_carry_field_and_remedy() -> None:
    with pytest.raises(ConfigError) as raised:
        FireCircleConfig(models=("embedded:time", "embedded:layers"))
    assert raised.value.field == "models"
    assert raised.value.message.startswith("Initial model set lacks valid quorum")
    assert raised.value.remedy is not None
    assert "enforce_quorum=False" in raised.value.remedy
    with pytest.raises(ConfigError) as raised:
        FireCircleConfig.embedded(alarm_threshold=7)
    assert (raised.value.shape, raised.value.field) == ("FireCircleConfig", "alarm_threshold")
    with pytest.raises(PromptError) as refused:
        MultiNeutrosophicPrompt(user="").require_text()
    assert (refused.value.field, refused.value.remedy) == ("prompt", "give system, application or user text")


def test_the_command_line_names_options_only_where_the_field_is_one() -> None:
    wrong = ConfigError("alarm_threshold", "must be between 0 and 1", shape="FireCircleConfig")
    assert in_options(wrong) == "--threshold: must be between 0 and 1"
    in_file = wrong.in_table("circle").within("firecircle.toml")
    assert in_options(in_file) == "firecircle.toml: [circle] alarm_threshold: must be between 0 and 1"
    unmapped = ConfigError("max_rounds", "too many", shape="FireCircleConfig")
    assert in_options(unmapped) == "FireCircleConfig.max_rounds: too many"
    advised = ConfigError("models", "too alike", "set enforce_quorum=False for an experiment")
    assert in_options(advised) == "models: too alike; pass --set enforce_quorum=false for an experiment"
    said_by_a_voice = VoiceError("budget_usd: set enforce_quorum=False", kind="http_error")
    assert in_options(said_by_a_voice) == "budget_usd: set enforce_quorum=False"


def test_a_missing_key_says_whose_and_where_it_would_stand() -> None:
    missing = pickle.loads(pickle.dumps(MissingKeyError("openai", "OPENAI_API_KEY").within("voice")))
    assert (missing.provider, missing.variable) == ("openai", "OPENAI_API_KEY")
    assert str(missing) == (
        "voice: openai needs a key: set OPENAI_API_KEY, or give api_key= together with provider='openai';"
        " the embedded circle needs no key: FireCircleConfig.embedded()"
    )
    assert in_options(missing) == "openai needs a key: set OPENAI_API_KEY; or leave --models out"


class _Inner(Declaration):
    size: int = Field(ge=1)


class _Outer(Shape):
    name: str
    inner: _Inner | None = None


def _wrong(**data: object) -> ValidationError:
    with pytest.raises(ValidationError) as raised:
        _Outer.model_validate(data)
    return raised.value


def test_one_formatter_tells_every_validation() -> None:
    missing = config_error(_wrong(), "outer")
    assert (missing.shape, missing.field, str(missing)) == ("outer", "name", "outer.name: Field required")
    assert str(config_error(_wrong(name="a", nam="b"), "outer")) == "outer.nam: no such field"
    both = config_error(_wrong(name=1, nam="b"), "outer")
    assert str(both) == "outer.name: Input should be a valid string (got 1) (and 1 more)"
    hidden = config_error(_wrong(name=1), with_value=False)
    assert str(hidden) == "name: Input should be a valid string"
    with pytest.raises(ConfigError) as raised:
        _Inner(size=0)
    assert str(raised.value) == "_Inner.size: Input should be greater than or equal to 1 (got 0)"
