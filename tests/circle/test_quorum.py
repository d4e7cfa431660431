"""Set quorum: coverage over count, every shortfall named, requirements that never relax."""

from __future__ import annotations

import pytest

from firecircle import (
    ConfigError,
    FireCircleConfig,
    ModelCharacteristics,
    NeutrosophicEvaluation,
    QuorumError,
    aggregate_consensus,
    judge_quorum,
    quorum_with_failures,
    validate_quorum,
    validate_quorum_with_empty_chair,
)

CLAUDE = ModelCharacteristics("claude", {"temporal_reasoning": 0.9}, "us_aligned", "safety")
QWEN = ModelCharacteristics("qwen", {"pattern_recognition": 0.8}, "cn_aligned", "efficiency")
DEEPSEEK = ModelCharacteristics("deepseek", {"cross_layer_analysis": 0.9}, "cn_aligned", "reasoning")
LLAMA = ModelCharacteristics("llama", {"educational_escalation": 0.7}, "open_source", "reasoning")
CIRCLE = [CLAUDE, QWEN, DEEPSEEK]


def test_a_diverse_circle_is_valid() -> None:
    assert validate_quorum(CIRCLE) == (True, "Valid set quorum")


def test_every_shortfall_is_in_the_reason() -> None:
    valid, reason = validate_quorum([QWEN])
    assert not valid
    assert reason == (
        "Minimum 2 active models required; Insufficient cognitive coverage: 1.6 < 5.0; "
        "Insufficient provider diversity: 1 < 2; "
        "Missing critical cognitive roles: temporal_reasoning, cross_layer_analysis"
    )


def test_missing_critical_roles_and_single_lineage() -> None:
    valid, reason = validate_quorum([QWEN, LLAMA])
    assert not valid
    assert "temporal_reasoning" in reason
    one_lineage = [
        ModelCharacteristics("claude-1", {"temporal_reasoning": 0.9}, "us_aligned", "safety"),
        ModelCharacteristics("claude-2", {"cross_layer_analysis": 0.8}, "us_aligned", "safety"),
    ]
    valid, reason = validate_quorum(one_lineage, min_provider_groups=2)
    assert not valid
    assert reason == "Insufficient provider diversity: 1 < 2"


def test_the_documents_worked_example_counts_eight_points() -> None:
    voices = [
        ModelCharacteristics("claude", {"temporal_reasoning": 1, "cross_layer_analysis": 1}, "us_aligned"),
        ModelCharacteristics("qwen", {"pattern_recognition": 1}, "cn_aligned"),
        ModelCharacteristics("deepseek-r1", {"temporal_reasoning": 1}, "cn_aligned"),
    ]
    verdict = judge_quorum(voices)
    assert verdict.coverage == 8.0
    assert set(verdict.lineages) == {"us_aligned", "cn_aligned"}


def test_ten_clones_cover_no_more_than_one() -> None:
    clones = [ModelCharacteristics(f"m#{n}", {"temporal_reasoning": 0.9}, "us_aligned") for n in range(10)]
    assert judge_quorum(clones).coverage == pytest.approx(2.7)


def test_a_critical_role_needs_more_than_half() -> None:
    half = ModelCharacteristics("half", {"cross_layer_analysis": 0.5}, "open_source")
    valid, reason = validate_quorum([CLAUDE, QWEN, half])
    assert not valid
    assert "Missing critical cognitive roles: cross_layer_analysis" in reason


def test_the_occupied_chair_covers_the_future_from_round_2() -> None:
    lean = [
        ModelCharacteristics("a", {"temporal_reasoning": 0.6}, "us_aligned"),
        ModelCharacteristics("b", {"cross_layer_analysis": 0.6}, "cn_aligned"),
    ]
    assert not validate_quorum(lean)[0]
    assert not validate_quorum_with_empty_chair(lean, "a", 1)
    assert validate_quorum_with_empty_chair(lean, "a", 2)
    assert not validate_quorum_with_empty_chair(lean, "somebody_else", 2)
    assert validate_quorum_with_empty_chair(CIRCLE, None, 1)
    assert not validate_quorum_with_empty_chair(CIRCLE, None, 2), "nobody speaks for the future"


def test_failures_name_the_lenses_that_went_blind() -> None:
    assert quorum_with_failures(CIRCLE, ["qwen"]) == (True, [])
    valid, missing = quorum_with_failures(CIRCLE, ["qwen", "deepseek"])
    assert not valid
    assert set(missing) == {"cross_layer_analysis", "pattern_recognition", "cn_aligned"}


def test_consensus_needs_a_quorum() -> None:
    chars = {voice.model_id: voice for voice in CIRCLE}
    config = FireCircleConfig(models=tuple(chars), model_characteristics=chars)
    said = [
        NeutrosophicEvaluation(truth=0.1, indeterminacy=0.1, falsehood=f, model=m)
        for m, f in (("claude", 0.4), ("qwen", 0.9), ("deepseek", 0.6))
    ]
    assert aggregate_consensus(said, ["claude", "deepseek"], chars, config) == 0.6
    with pytest.raises(QuorumError, match="provider diversity"):
        aggregate_consensus(said, ["qwen", "deepseek"], chars, config)


def test_an_unknown_model_sits_with_neutral_roles() -> None:
    config = FireCircleConfig(models=("anthropic/claude-sonnet-4", "nobody/knows"))
    assert config.neutral_voices == ("nobody/knows",)
    assert not config.characteristics("nobody/knows").holds_critical_role()
    with pytest.raises(ConfigError, match=r"add embedded:\S+ .*\(built in, free\)"):
        FireCircleConfig(models=("nobody/knows", "nobody/knew"))


def test_a_small_model_is_not_what_its_family_is() -> None:
    small = FireCircleConfig(models=("ollama:qwen2.5:0.5b", "anthropic/claude-sonnet-4"))
    assert small.neutral_voices == ("ollama:qwen2.5:0.5b",)
    assert small.characteristics("ollama:qwen2.5:0.5b").provider_lineage == "alibaba"
    large = FireCircleConfig(models=("ollama:qwen2.5:72b", "anthropic/claude-sonnet-4"))
    assert large.neutral_voices == ()


def test_a_clone_shares_its_originals_characteristics() -> None:
    with pytest.raises(ConfigError, match=r"Initial model set lacks valid quorum: Insufficient provider div"):
        FireCircleConfig(models=("anthropic/claude-sonnet-4", "anthropic/claude-sonnet-4#2"))
    assert FireCircleConfig(models=("a", "a#2"), enforce_quorum=False).models == ("a", "a#2")


def test_the_default_and_the_embedded_circle_are_valid() -> None:
    assert all(model.startswith("family:") for model in FireCircleConfig().models)
    assert all(model.startswith("embedded:") for model in FireCircleConfig.embedded().models)


@pytest.mark.parametrize(
    ("roles", "complaint"),
    [({"telepathy": 1.0}, "no such role telepathy"), ({"future_impact": 1.2}, "between 0 and 1")],
)
def test_impossible_characteristics_are_refused(roles: dict[str, float], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        ModelCharacteristics("m", roles, "us_aligned")
