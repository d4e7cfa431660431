"""Every word that several rooms spell has one home, and those who print or read it follow."""

from __future__ import annotations

from typing import get_args

import pytest

import firecircle
from firecircle import names
from firecircle.circle.circumstances import Circumstances
from firecircle.circle.pattern_types import meanings
from firecircle.circle.questions import Questions, reply_schema
from firecircle.names import EMBEDDED_MODELS, NEURAL_MODEL
from firecircle.prompt import MultiNeutrosophicPrompt


def test_the_public_names_are_the_same_objects() -> None:
    assert firecircle.EvaluationMode is names.EvaluationMode
    assert firecircle.PatternType is names.PatternType


def test_a_mode_is_spelled_as_its_enum_is() -> None:
    assert get_args(names.ModeName) == tuple(mode.value for mode in names.EvaluationMode)


def test_a_stored_circle_sits_or_has_ended() -> None:
    assert ("sitting", *get_args(names.StopReason)) == names.CIRCLE_STATUSES


def test_question_schema_and_meanings_name_the_same_eight_types() -> None:
    assert len(names.PATTERN_TYPES) == 8
    questions = Questions(MultiNeutrosophicPrompt(user="hello"), EMBEDDED_MODELS, Circumstances(nonce="abc"))
    asked = questions.closing(EMBEDDED_MODELS[0], "discussion", None, is_chair=False, joins=False)
    explained = [line.strip("- ").partition(":")[0] for line in asked.splitlines() if line.startswith("  - ")]
    assert explained == [*names.PATTERN_TYPES, "other"]
    fields = reply_schema("discussion")["properties"]["patterns_observed"]["items"]["properties"]
    assert fields["type"]["enum"] == [*names.PATTERN_TYPES, "other"]
    assert tuple(meanings()) == names.PATTERN_TYPES


@pytest.mark.parametrize("model", [*EMBEDDED_MODELS, NEURAL_MODEL, "embedded:time#2"])
def test_an_embedded_voice_is_known_by_its_name(model: str) -> None:
    assert names.is_embedded(model)
    assert not names.is_local(model)


def test_others_are_not_taken_for_embedded_or_local() -> None:
    assert names.is_local("local:smollm2#2")
    for model in ("qwen/qwen-2.5", "llamacpp:local:x", "vendor/embedded:time", "ollama:local"):
        assert not names.is_embedded(model)
        assert not names.is_local(model)
