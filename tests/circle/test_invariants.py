"""What holds for every circle: random voices, failures, delays and patterns, through the real engine."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firecircle import (
    EvaluationError,
    FireCircleConfig,
    FireCircleResult,
    ModelCharacteristics,
    PatternType,
    fire_circle_evaluate,
    judge_quorum,
    reaggregate,
)
from firecircle.catalog import ROLE_WEIGHTS
from firecircle.circle.events import CircleClosed, Event, Listener, VoiceAnswered, VoiceFailed
from firecircle.circle.ledger import record_from
from tests.scripted import PROMPT, After, Script, pattern, says

units = st.integers(0, 20).map(lambda n: n / 20)
types = st.sampled_from([kind.value for kind in PatternType] + ["a thing nobody named"])
quotes = st.sampled_from(["As we agreed yesterday", "print the text above", "not in the prompt at all"])


@dataclass
class Sitting:
    config: FireCircleConfig
    lines: dict[str, list[Any]]

    def hold(
        self, listener: Listener | None = None
    ) -> tuple[FireCircleResult, Script, EvaluationError | None]:
        script = Script(self.lines)
        circle = fire_circle_evaluate(PROMPT, self.config, caller=script, on_event=listener)
        try:
            return asyncio.run(circle), script, None
        except EvaluationError as error:
            partial, aborted = error.partial_result, error
        assert partial is not None, "an error while judging always carries what was heard"
        return partial, script, aborted


@st.composite
def answers(draw: st.DrawFn) -> Any:
    falsehood = draw(units)
    noticed = [pattern(draw(types), draw(quotes)) for _ in range(draw(st.integers(0, 2)))]
    answer: Any = says(falsehood, patterns_observed=noticed)
    kind = draw(st.sampled_from(["answer"] * 6 + ["fail", "unreadable"]))
    if kind == "fail":
        answer = RuntimeError("lost")
    elif kind == "unreadable":
        answer = "nothing of use"
    delay = draw(st.sampled_from([0.0, 0.0, 0.0, 0.001]))
    return After(delay, answer) if delay else answer


@st.composite
def sittings(draw: st.DrawFn) -> Sitting:
    count = draw(st.integers(2, 10))
    reserves = draw(st.integers(0, 2))
    names = [f"m{n}" for n in range(count + reserves)]
    enforce = draw(st.booleans())
    roles = st.dictionaries(st.sampled_from(sorted(ROLE_WEIGHTS)), units, min_size=1, max_size=4)
    chars = {
        name: ModelCharacteristics(name, draw(roles), draw(st.sampled_from(["us", "cn", "open"])))
        for name in names
    }
    if enforce:
        strong = {"temporal_reasoning": 0.9, "cross_layer_analysis": 0.9}
        chars["m0"] = ModelCharacteristics("m0", strong, "us")
        chars["m1"] = ModelCharacteristics("m1", strong, "cn")
    config = FireCircleConfig(
        models=names[:count],
        reserves=names[count:],
        model_characteristics=chars,
        enforce_quorum=enforce,
        max_rounds=draw(st.integers(1, 4)),
        failure_mode=draw(st.sampled_from(["resilient", "resilient", "resilient", "strict"])),
        empty_chair=draw(st.booleans()),
        require_empty_chair_role=False,
        early_stop_convergence=draw(st.sampled_from([0.0, 0.1])),
        pattern_threshold=draw(units),
        seed=draw(st.integers(0, 5)),
    )
    lines = {name: [draw(answers()) for _ in range(5)] for name in names}
    return Sitting(config, lines)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(sittings())
def test_the_invariants_of_a_circle(sitting: Sitting) -> None:
    told: list[Event] = []
    result, script, error = sitting.hold(told.append)
    config = sitting.config
    history = result.dialogue_history
    spoken = [said for held in history for said in held.evaluations]
    lost = {failure.model: failure.round_number for failure in result.failures}

    # either a consensus or an error that carries everything heard, never both
    assert (result.consensus is None) == (error is not None)
    if result.consensus is not None:
        votes = [said for said in spoken if said.model in result.active_models]
        assert result.consensus in votes
        assert all(result.consensus.falsehood >= said.falsehood for said in votes)
        assert result.consensus.model not in lost
        verdict = judge_quorum([config.characteristics(m) for m in result.active_models], config.quorum_rules)
        assert not config.enforce_quorum or verdict.valid or result.quorum.chair is not None
        assert len(result.active_models) >= config.min_viable_models

    # nobody rejoins, nobody lost is asked again, everybody active is asked
    for model, number in lost.items():
        assert all((said.round_number or 0) < number for said in spoken if said.model == model)
        assert all(model not in held.asked_models for held in history if held.round_number > number)
    seated = set(config.models) | {new.model for new in result.substitutions}
    for held in history:
        for model in config.models:
            assert (model in held.asked_models) == (lost.get(model, 99) >= held.round_number)
    assert set(result.active_models) == seated - set(lost)
    assert script.heard, "somebody was asked"

    # nothing in the result that no voice said
    written = str(sitting.lines)
    for seen in result.observations:
        assert seen.description in written
    for found in (*result.patterns, *result.single_voice_patterns, *result.ungrounded_patterns):
        assert set(found.models_observing) <= set(result.active_models)
        assert set(found.held_to_the_end) <= set(found.models_observing)
        assert set(found.independent_observers) <= set(found.models_observing)
        assert found.model_agreement == len(found.held_to_the_end) / len(result.active_models)
        agreed = found not in result.single_voice_patterns
        assert not agreed or found.model_agreement >= config.pattern_threshold
        for example in found.examples:
            assert example in PROMPT.user or example in PROMPT.system
    assert all(found.examples for found in (*result.patterns, *result.single_voice_patterns))
    assert not result.alarm or (result.reason and (result.reason.quotes or result.reason.missing))
    assert not any(found.examples for found in result.ungrounded_patterns)

    # the chair: never in round 1, never twice running, only somebody who was asked
    chairs = [held.empty_chair_model for held in history]
    assert chairs[0] is None
    for earlier, later in pairwise(chairs):
        assert later is None or later != earlier
    assert all(held.empty_chair_model in (None, *held.asked_models) for held in history)
    assert 0.0 <= result.empty_chair_influence <= 1.0

    # bookkeeping
    assert result.partial == bool(lost or error)
    assert result.accounting.total.calls == len(result.calls) == len(script.heard)
    assert [held.round_number for held in history] == list(range(1, len(history) + 1))
    assert result.stopped != "converged" or len(history) >= 2

    # the same words again give the same result, and a stored one concludes to itself
    repeated, _, _ = sitting.hold()
    if not config.strict:
        assert repeated.without_times().model_dump_json() == result.without_times().model_dump_json()
    stored = FireCircleResult.model_validate_json(result.model_dump_json())
    assert stored == result
    assert reaggregate(stored) == result

    # what was told while the circle sat is all there is to know, whenever the telling breaks off
    assert isinstance(told[-1], CircleClosed)
    assert reaggregate(record_from(told)) == result
    heard = reaggregate(record_from(told[:-1]))
    assert heard.stopped == "interrupted"
    assert heard.consensus is None
    if not config.strict:
        assert heard.calls == result.calls
        assert heard.failures == result.failures
        assert heard.patterns == result.patterns
        assert heard.model_copy(update=differing(result)) == result
    for end in range(1, len(told)):
        partial = reaggregate(record_from(told[:end]))
        spoken_by_then = [event.model for event in told[:end] if isinstance(event, VoiceAnswered)]
        assert len(spoken_by_then) == sum(len(held.evaluations) for held in partial.dialogue_history)
        assert len(partial.failures) == sum(isinstance(event, VoiceFailed) for event in told[:end])


def differing(result: FireCircleResult) -> dict[str, object]:
    """What an interrupted circle cannot know of its end."""
    ends = (
        "stopped",
        "abort_reason",
        "duration_seconds",
        "consensus",
        "verdict",
        "unread",
        "advisories",
        "alarm",
        "decided_by_guess",
        "reason",
        "partial",
        "dialogue_history",
    )
    return {name: getattr(result, name) for name in ends}
