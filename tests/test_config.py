"""A declaration that cannot work is refused in one line that names the field and the way out."""

from __future__ import annotations

from typing import Any

import pytest

from firecircle import (
    CircleSize,
    ConfigError,
    EvaluationConfig,
    FailureMode,
    FireCircleConfig,
    MultiNeutrosophicPrompt,
    NeutrosophicEvaluation,
)
from tests.scripted import circle

TEN = tuple("abcdefghij")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"models": ("a",)}, "models: a circle has 2 to 10 models, got 1"),
        ({"models": (*TEN, "k")}, "models: a circle has 2 to 10 models, got 11"),
        ({"models": ("a", "a")}, "models: 'a' is listed twice; a deliberate clone is written a#2"),
        ({"circle_size": "large"}, "circle_size: LARGE is 7 to 10 models, got 2"),
        ({"circle_size": "huge"}, "circle_size: is small, medium or large"),
        ({"pattern_threshold": 1.5}, "pattern_threshold: must be between 0 and 1 (got 1.5)"),
        ({"alarm_threshold": float("nan")}, "alarm_threshold: must be between 0 and 1"),
        ({"pattern_threshold": True}, "pattern_threshold: must be a number between 0 and 1"),
        ({"max_rounds": 0}, "max_rounds"),
        ({"max_rounds": 5}, "max_rounds"),
        ({"min_viable_models": 1}, "min_viable_models"),
        ({"min_viable_models": 3}, "min_viable_models: 3 of 2 models"),
        ({"timeout_per_round": 0}, "timeout_per_round"),
        ({"empty_chair_model": "z"}, "empty_chair_model: 'z' is not one of the models"),
        ({"empty_chair_rotation": False}, "empty_chair_model: name who keeps the chair"),
        ({"pattern_classification": "llm"}, "classifier_model: llm classification needs the name of a voice"),
        ({"failure_mode": "lenient"}, "failure_mode"),
        ({"reserves": ("a",)}, "reserves: 'a' is listed twice"),
        ({"focus": "footer"}, "focus"),
        ({"colour": "red"}, "colour: no such field"),
    ],
)
def test_a_circle_that_cannot_sit_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FireCircleConfig(**{"models": ("a", "b"), "enforce_quorum": False, **fields})
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_size_follows_from_the_models_and_may_be_stated() -> None:
    assert circle("a", "b").size is CircleSize.SMALL
    assert circle(*"abcd", circle_size=CircleSize.MEDIUM).size is CircleSize.MEDIUM
    assert circle(*TEN).size is CircleSize.LARGE


def test_a_config_round_trips_without_its_key() -> None:
    config = circle("a", "b", circle_size="small", failure_mode=FailureMode.STRICT, api_key="sk-canary")
    written = config.model_dump_json()
    assert "sk-canary" not in written
    assert "sk-canary" not in repr(config)
    assert FireCircleConfig.model_validate_json(written) == config.model_copy(update={"api_key": None})


def test_other_shapes_refuse_nonsense_too() -> None:
    with pytest.raises(ConfigError, match="a circle is configured with FireCircleConfig"):
        EvaluationConfig(mode="fire_circle")
    with pytest.raises(ConfigError, match="at least one"):
        EvaluationConfig(models=())
    with pytest.raises(ConfigError, match=r"MultiNeutrosophicPrompt\.user"):
        MultiNeutrosophicPrompt(user=3)  # type: ignore[arg-type]
    for wrong in (8.5, float("nan"), True, "0.7"):
        with pytest.raises(ValueError, match="between 0 and 1"):
            NeutrosophicEvaluation(truth=0.1, indeterminacy=0.1, falsehood=wrong)
