"""Lineages counted by who trained a model, or by the wider group of trainers."""

from __future__ import annotations

import pytest

from firecircle import FireCircleConfig, ModelCharacteristics, VoiceHistoryTracker, WeightedVoiceSelector
from firecircle.catalog import families, group_of
from firecircle.circle.quorum import QuorumRules, judge_quorum, quorum_with_failures
from firecircle.errors import ConfigError
from firecircle.rotation.drawing import verify_draw
from firecircle.rotation.tracker import MemoryHistory

EVERYTHING = {
    "temporal_reasoning": 1.0,
    "cross_layer_analysis": 1.0,
    "pattern_recognition": 1.0,
    "polite_extraction_masking": 1.0,
}
BY_GROUP = QuorumRules(lineage_by="group")


def voice(name: str, trainer: str) -> ModelCharacteristics:
    return ModelCharacteristics(name, EVERYTHING, trainer)


AMERICAN = [voice("claude", "anthropic"), voice("gpt", "openai")]
MIXED = [voice("claude", "anthropic"), voice("qwen", "alibaba")]


def test_trainers_of_one_group_are_two_lineages_and_one_group() -> None:
    assert judge_quorum(AMERICAN).valid
    verdict = judge_quorum(AMERICAN, BY_GROUP)
    assert verdict.shortfalls == ("Insufficient provider diversity: 1 < 2",)
    assert verdict.groups == {"us_aligned": ("claude", "gpt")}
    assert judge_quorum(MIXED, BY_GROUP).valid


def test_a_group_may_be_declared_and_an_unknown_trainer_is_its_own() -> None:
    assert group_of("a garage") == "a garage"
    declared = ModelCharacteristics("mine", EVERYTHING, "a garage", lineage_group="us_aligned")
    assert not judge_quorum([AMERICAN[0], declared], BY_GROUP).valid


def test_every_catalogued_embedded_reader_is_of_one_group() -> None:
    trainers = {each.provider_lineage for each in families() if each.match[0].startswith("embedded:")}
    assert {group_of(trainer) for trainer in trainers} == {"embedded"}


def test_a_loss_names_the_group_that_went() -> None:
    valid, blind = quorum_with_failures(MIXED, ["qwen"], lineage_by="group")
    assert not valid
    assert "cn_aligned" in blind


def test_a_circle_of_one_group_is_refused_by_group() -> None:
    chars = {each.model_id: each for each in AMERICAN}
    names = tuple(chars)
    assert FireCircleConfig(models=names, model_characteristics=chars).lineage_by == "trainer"
    with pytest.raises(ConfigError, match="provider diversity"):
        FireCircleConfig(models=names, model_characteristics=chars, lineage_by="group")


def test_draws_count_groups_and_can_be_verified() -> None:
    pool = [*AMERICAN, MIXED[1]]
    selector = WeightedVoiceSelector(
        VoiceHistoryTracker(MemoryHistory()),
        characteristics={each.model_id: each for each in pool},
        rules=BY_GROUP,
    )
    for seed in range(20):
        drawn = selector.draw([each.model_id for each in pool], 2, session_seed=str(seed))
        assert "qwen" in drawn.selected
        assert type(drawn).model_validate_json(drawn.model_dump_json()) == drawn
        assert verify_draw(drawn).problems == ()
    plain = WeightedVoiceSelector(
        VoiceHistoryTracker(MemoryHistory()), characteristics={each.model_id: each for each in pool}
    ).draw([each.model_id for each in pool], 2, session_seed="1")
    assert "lineage" not in plain.model_dump_json().replace("provider_lineage", "")
