"""What circles teach: who complements whom, who fits a domain, and what a voice really contributes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firecircle import FireCircleConfig, FireCircleResult, MultiNeutrosophicPrompt, fire_circle_evaluate
from firecircle.catalog import ModelCharacteristics
from firecircle.prompt import EarlierTurn
from firecircle.rotation.affinity import affinities
from firecircle.rotation.calibration import LabelledCircle, calibrate, prior_strength
from firecircle.rotation.selector import circle_size_for, complexity_of, expertise_of, ranked_for
from firecircle.rotation.tracker import DomainStats
from tests.scripted import PROMPT, Script, circle, pattern, says

TIME = ModelCharacteristics("time", {"temporal_reasoning": 0.9}, "us", confidence=0.5)
LAYERS = ModelCharacteristics("layers", {"cross_layer_analysis": 0.9}, "cn", confidence=0.5)
DECLARED = {"time": TIME, "layers": LAYERS}


async def judged(*, time: float, layers: float, time_2: float | None = None) -> FireCircleResult:
    """A circle of one round in which the voices said this."""
    falsehoods = {"time": time, "layers": layers, **({} if time_2 is None else {"time#2": time_2})}
    config = FireCircleConfig(models=tuple(falsehoods), model_characteristics=DECLARED, max_rounds=1)
    return await fire_circle_evaluate(PROMPT, config, caller=Script({m: [f] for m, f in falsehoods.items()}))


async def test_many_circles_move_what_is_declared_and_few_hardly() -> None:
    missed, heard = await judged(time=0.1, layers=0.1), await judged(time=0.9, layers=0.1)
    attacks = [LabelledCircle(missed, "attack", "temporal_inconsistency")]
    benign = [LabelledCircle(missed, "benign")]
    few = {one.model: one for one in calibrate(attacks + benign, DECLARED).proposals}["time"]
    many = {one.model: one for one in calibrate((attacks + benign) * 200, DECLARED).proposals}["time"]
    confirmed = calibrate(
        [LabelledCircle(heard, "attack", "temporal_inconsistency"), *benign] * 200, DECLARED
    )
    raised = {one.model: one for one in confirmed.proposals}["time"]
    role = "temporal_reasoning"
    assert 0.8 < few.proposed.cognitive_roles[role] < 0.9
    assert many.proposed.cognitive_roles[role] < 0.15
    assert raised.proposed.cognitive_roles[role] > 0.95
    assert many.proposed.confidence < few.proposed.confidence < raised.proposed.confidence
    assert (many.circles, many.benign, many.false_alarms) == (400, 200, 0)
    (evidence,) = many.roles
    assert (evidence.attacks, evidence.hits, evidence.measured, evidence.declared) == (200, 0, 0.0, 0.9)
    assert many.declared == TIME


async def test_a_voice_that_always_alarms_contributes_nothing() -> None:
    always = await judged(time=1.0, layers=1.0)
    circles = [
        LabelledCircle(always, "attack", "temporal_inconsistency"),
        LabelledCircle(always, "attack", "cross_layer_fabrication"),
        LabelledCircle(always, "benign"),
    ]
    for one in calibrate(circles * 100, DECLARED).proposals:
        assert all(role.measured == 0.0 for role in one.roles)
        assert all(share < 0.2 for share in one.proposed.cognitive_roles.values())


async def test_the_arithmetic_is_what_the_method_says() -> None:
    heard, missed = await judged(time=0.9, layers=0.1), await judged(time=0.1, layers=0.9)
    circles = [
        *[LabelledCircle(heard, "attack", "temporal_inconsistency")] * 30,
        *[LabelledCircle(missed, "attack", "temporal_inconsistency")] * 10,
        *[LabelledCircle(heard, "benign")] * 4,
        *[LabelledCircle(missed, "benign")] * 36,
    ]
    one = {one.model: one for one in calibrate(circles, DECLARED).proposals}["time"]
    assert prior_strength(0.5) == 25
    assert one.roles[0].measured == pytest.approx(0.75 - 0.1)
    assert one.proposed.cognitive_roles["temporal_reasoning"] == pytest.approx(
        (25 * 0.9 + 40 * 0.65) / 65, abs=0.005
    )
    assert one.proposed.confidence == pytest.approx((25 * 0.5 + 40 * 0.75) / 65, abs=0.005)


async def test_without_benign_prompts_or_kinds_nothing_is_proposed() -> None:
    heard = await judged(time=0.9, layers=0.9)
    only_attacks = calibrate([LabelledCircle(heard, "attack", "temporal_inconsistency")] * 50, DECLARED)
    assert not any(one.changed for one in only_attacks.proposals)
    of_no_kind = calibrate([LabelledCircle(heard, "attack"), LabelledCircle(heard, "benign")] * 50, DECLARED)
    assert not any(one.changed for one in of_no_kind.proposals)
    assert calibrate([]).proposals == ()


async def test_clones_speak_for_their_original_and_a_broken_circle_is_told() -> None:
    missed = await judged(time=0.1, layers=0.9, time_2=0.1)
    circles = [LabelledCircle(missed, "attack", "temporal_inconsistency"), LabelledCircle(missed, "benign")]
    outcome = calibrate(circles * 100, DECLARED)
    told = {one.model: one for one in outcome.proposals}
    assert set(told) == {"time", "layers"}
    assert told["time"].circles == 400
    (broken,) = outcome.broken
    assert broken.startswith("time, layers, time#2: ")
    assert "Missing critical cognitive roles: temporal_reasoning" in broken


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 30), st.integers(0, 30))
def test_proposals_lie_between_declared_and_measured(hits: int, misses: int, quiet: int, false: int) -> None:
    heard, missed = _kept(0.9), _kept(0.1)
    circles = [
        *[LabelledCircle(heard, "attack", "fabricated_progression")] * hits,
        *[LabelledCircle(missed, "attack", "fabricated_progression")] * misses,
        *[LabelledCircle(missed, "benign")] * quiet,
        *[LabelledCircle(heard, "benign")] * false,
    ]
    one = {one.model: one for one in calibrate(circles, DECLARED).proposals}["time"]
    for role in one.roles:
        low, high = sorted((role.declared, role.measured))
        assert low - 0.005 <= role.proposed <= high + 0.005


_CACHE: dict[float, FireCircleResult] = {}


def _kept(time: float) -> FireCircleResult:
    import asyncio

    if time not in _CACHE:
        _CACHE[time] = asyncio.run(judged(time=time, layers=0.1))
    return _CACHE[time]


async def test_pairs_that_see_different_things_complement_each_other() -> None:
    config = circle("a", "b", "c", max_rounds=2, pattern_threshold=0.0)
    temporal, polite = pattern("temporal_inconsistency"), pattern("polite_extraction", "thank you so much")
    lines = {
        "a": [0.2, says(0.9, patterns_observed=[temporal])],
        "b": [0.2, says(0.9, patterns_observed=[temporal])],
        "c": [0.2, says(0.9, patterns_observed=[polite])],
    }
    result = await fire_circle_evaluate(PROMPT, config, caller=Script(lines))
    assert len(result.patterns) == 2
    pairs = affinities([result] * 10)
    assert {(pair.first, pair.second) for pair in pairs[:2]} == {("a", "c"), ("b", "c")}
    best = pairs[0]
    assert (best.circles, best.patterns, best.backed_by_either) == (10, 20, 20)
    assert best.complement == pytest.approx(10 / 25)
    assert (pairs[2].first, pairs[2].second, pairs[2].complement) == ("a", "b", 0.0)
    assert affinities([result])[0].complement < best.complement
    assert affinities([]) == ()


def test_expertise_follows_the_domain_then_the_record() -> None:
    teacher = ModelCharacteristics("teacher", {"educational_escalation": 1.0}, "us")
    guard = ModelCharacteristics("guard", {"cross_layer_analysis": 0.4}, "us")
    assert [name for name, _ in ranked_for("software", [teacher, guard], {})] == ["guard", "teacher"]
    assert [name for name, _ in ranked_for("education", [teacher, guard], {})] == ["teacher", "guard"]
    poor, good = DomainStats(count=9, measured=9, quality=0.0), DomainStats(count=9, measured=9, quality=1.0)
    assert (
        expertise_of(guard, "legal", poor) < expertise_of(guard, "legal") < expertise_of(guard, "legal", good)
    )


def test_a_prompt_with_more_to_oversee_gets_more_voices() -> None:
    plain = MultiNeutrosophicPrompt(user="What is the capital of France?", turns=())
    layered = MultiNeutrosophicPrompt(system="Be kind.", application="A page.", user="What is it?")
    long = MultiNeutrosophicPrompt(
        system="s" + " word" * 500,
        application="QWxs" * 40 + " text" * 5000,
        user="go on",
        turns=tuple(EarlierTurn(role="user", content="and then?") for _ in range(6)),
    )
    sizes = [circle_size_for(prompt, 40) for prompt in (plain, layered, long)]
    assert sizes == [3, 5, 10]
    assert circle_size_for(long, 4) == 4
    assert complexity_of(long).opaque_runs == 1
