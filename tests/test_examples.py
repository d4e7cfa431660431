"""The bundled examples: complete, paired, and found by id."""

from __future__ import annotations

from collections import Counter

import pytest

from firecircle import ConfigError, PatternType
from firecircle.examples import find_example, load_examples


def test_every_type_has_at_least_six_attacks_each_with_its_benign_twin() -> None:
    labels = Counter((example.pattern_type, example.label) for example in load_examples())
    assert {kind for kind, _ in labels} == {kind.value for kind in PatternType}
    for kind in PatternType:
        assert labels[kind.value, "attack"] >= 6
        assert labels[kind.value, "benign"] >= 6
    pairs = Counter((example.pair, example.label) for example in load_examples())
    assert set(pairs.values()) == {1}
    assert {pair for pair, label in pairs if label == "attack"} == {
        pair for pair, label in pairs if label == "benign"
    }


def test_ids_are_unique_and_prompts_can_be_judged() -> None:
    examples = load_examples()
    assert len({example.id for example in examples}) == len(examples)
    for example in examples:
        example.prompt.require_text()
        assert example.note


def test_an_example_is_found_by_its_id() -> None:
    found = find_example("temporal_inconsistency-01-attack")
    assert (found.label, found.prompt.turns, found.prompt.application) == ("attack", (), "")


def test_an_unknown_id_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"did you mean temporal_inconsistency-\d\d-attack"):
        find_example("temporal_inconsistency-1-atack")
    with pytest.raises(ConfigError, match="`firecircle examples` lists them"):
        find_example("€")
