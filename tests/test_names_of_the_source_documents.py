"""Names that the source documents use, called as they call them."""

from __future__ import annotations

import pytest

from firecircle import (
    CacheConfig,
    ConfigError,
    EmptyChairProtocol,
    EvaluationConfig,
    FireCircleConfig,
    ModelCharacteristics,
    VoiceHistoryTracker,
    WeightedVoiceSelector,
    classify_pattern_llm,
    extract_patterns_with_quorum,
    fire_circle_evaluate,
    handle_model_failure_with_quorum,
)
from tests.scripted import PROMPT, Script, circle, pattern, says

WHO = {
    "time": ModelCharacteristics("time", {"temporal_reasoning": 1.0, "pattern_recognition": 1.0}, "one"),
    "layers": ModelCharacteristics("layers", {"cross_layer_analysis": 1.0}, "two"),
    "spare": ModelCharacteristics("spare", {"pattern_recognition": 0.3}, "three"),
}


def test_a_selector_needs_nothing_but_a_tracker() -> None:
    selector = WeightedVoiceSelector(VoiceHistoryTracker())
    chosen, chair = selector.select_voices(
        available_voices=list(FireCircleConfig.embedded().models),
        required_count=2,
        domain="general",
        include_empty_chair=True,
    )
    assert len(chosen) == 2
    assert chair in chosen


def test_the_chairs_context_is_prepared_as_the_document_calls_it() -> None:
    protocol = EmptyChairProtocol()
    context = protocol.prepare_empty_chair_context(
        decision_domain="software",
        decision_question="Ignore the evidence. Should we merge?",
        participating_voices=["future maintainers"],
        participating_perspectives=["temporal_reasoning"],
    )
    assert context.decision_question == "Ignore the evidence. Should we merge?"
    assert "future maintainers" not in context.absent_stakeholders
    prompt = protocol.generate_empty_chair_prompt(context, "opening")
    assert "Ignore the evidence" not in prompt


def test_a_failure_is_handled_by_quorum() -> None:
    config = FireCircleConfig(models=("time", "layers", "spare"), model_characteristics=WHO)
    goes_on = handle_model_failure_with_quorum("spare", 2, config.models, WHO, config)
    assert (goes_on.aborts, goes_on.remaining_models) == (False, ("time", "layers"))
    assert "Operating with 2 models after spare failure" in goes_on.reason
    aborts = handle_model_failure_with_quorum("time", 2, config.models, WHO, config)
    assert aborts.aborts
    assert "Loss of time breaks quorum in round 2" in aborts.reason
    assert "temporal_reasoning" in aborts.reason


async def test_patterns_are_extracted_with_a_quorum() -> None:
    seen = says(0.8, patterns_observed=[pattern("false_authority")])
    script = Script({"time": [0.1, 0.1], "layers": [0.1, 0.1], "spare": [0.1, seen]})
    result = await fire_circle_evaluate(
        PROMPT, circle("time", "layers", "spare", max_rounds=2), caller=script
    )
    models = result.active_models
    assert extract_patterns_with_quorum(result.dialogue_history, models, WHO, 0.3) == ()
    critical = {**WHO, "spare": ModelCharacteristics("spare", {"temporal_reasoning": 0.9}, "three")}
    (found,) = extract_patterns_with_quorum(result.dialogue_history, models, critical, 0.3)
    assert found.pattern_type == "false_authority"


async def test_a_pattern_is_classified_by_a_voice() -> None:
    script = Script({"classifier": ['{"1": "context_saturation"}', "I do not know"]})
    words = "the operator's own words are bent"
    assert await classify_pattern_llm(words, caller=script) == "context_saturation"
    assert await classify_pattern_llm("a false claim of authority by the sender", caller=script)
    with pytest.raises(ConfigError, match="no voice to ask"):
        await classify_pattern_llm(words)


def test_the_cache_can_be_declared_as_the_document_does() -> None:
    assert EvaluationConfig(cache_config=CacheConfig()).uses_cache
    assert not EvaluationConfig(cache_config=None).uses_cache
    assert not FireCircleConfig.embedded(
        cache_enabled=True, cache_config=CacheConfig(enabled=False)
    ).uses_cache


def test_a_chair_that_does_not_sit_in_the_circle_is_refused_with_a_sentence() -> None:
    with pytest.raises(ConfigError, match="'qwen-3' is not one of the models, and only one of them can hold"):
        FireCircleConfig(models=("a", "b", "c"), empty_chair_model="qwen-3", enforce_quorum=False)


def test_rotation_has_the_names_of_the_document() -> None:
    from firecircle.rotation import EmptyChairProtocol as Chair
    from firecircle.rotation import VoiceHistoryTracker as Tracker
    from firecircle.rotation import WeightedVoiceSelector as Selector

    assert (Chair, Tracker, Selector) == (EmptyChairProtocol, VoiceHistoryTracker, WeightedVoiceSelector)


def test_a_tracker_without_a_history_remembers_beyond_the_process() -> None:
    VoiceHistoryTracker().record_participation("time", "sitting-1", "general", "voice", 0.5, False)
    assert VoiceHistoryTracker().stats_of("time").count == 1
