"""A draw follows from seed and history alone, is a quorum, and can be made again by anybody."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firecircle.catalog import CRITICAL_ROLES, ModelCharacteristics
from firecircle.circle.config import get_empty_chair_model
from firecircle.circle.quorum import QuorumRules, judge_quorum
from firecircle.errors import ConfigError, UnknownModelError
from firecircle.rotation.drawing import verify_draw, waiting_time
from firecircle.rotation.selector import WeightedVoiceSelector
from firecircle.rotation.tracker import Draw, MemoryHistory, Participation
from firecircle.store.opening import open_store
from tests.rotation.pools import ALL_ROUND, Clock, alike, hear, pools, tracker_at

Pool = dict[str, ModelCharacteristics]


def quorate_sets(pool: Pool, count: int) -> list[tuple[str, ...]]:
    return [
        names for names in combinations(pool, count) if judge_quorum([pool[name] for name in names]).valid
    ]


@settings(max_examples=60)
@given(pools(), st.integers(2, 5), st.text(min_size=1, max_size=20))
def test_a_selection_is_a_quorum_or_says_what_is_missing(pool: Pool, count: int, seed: str) -> None:
    selector = WeightedVoiceSelector(tracker_at(Clock()), characteristics=pool)
    possible = quorate_sets(pool, count)
    if count > len(pool):
        with pytest.raises(ConfigError, match="required_count: "):
            selector.select_voices(list(pool), count, session_seed=seed)
    elif possible:
        ids, chair = selector.select_voices(list(pool), count, session_seed=seed)
        assert tuple(sorted(ids)) in possible
        assert chair in ids
    else:
        with pytest.raises(ConfigError) as refused:
            selector.select_voices(list(pool), count, session_seed=seed)
        told = str(refused.value)
        assert "\n" not in told
        for role in CRITICAL_ROLES:
            present = any(voice.cognitive_roles.get(role, 0) > 0.5 for voice in pool.values())
            assert (f"no voice brings {role}" in told) == (not present)
        lineages = {voice.provider_lineage for voice in pool.values()}
        assert ("different ones are needed" in told) == (len(lineages) < 2)


@settings(max_examples=40)
@given(pools(4, 7), st.integers(2, 4), st.text(min_size=1, max_size=20))
def test_it_is_the_first_quorum_of_the_weighted_order(pool: Pool, count: int, seed: str) -> None:
    possible = {frozenset(names) for names in quorate_sets(pool, count)}
    if not possible:
        return
    drawn = WeightedVoiceSelector(tracker_at(Clock()), characteristics=pool).draw(
        list(pool), count, session_seed=seed
    )
    waits = {one.voice_id: waiting_time(seed, one.voice_id, one.weight) for one in drawn.candidates}
    ranked = sorted(waits, key=lambda name: waits[name])
    first = next(names for names in combinations(ranked, count) if frozenset(names) in possible)
    assert set(drawn.selected) == set(first)


@settings(max_examples=40)
@given(st.permutations([f"voice-{n}" for n in range(7)]), st.text(min_size=1, max_size=20), st.integers(2, 6))
def test_listing_order_is_nothing_and_the_seed_is_everything(names: list[str], seed: str, count: int) -> None:
    history = MemoryHistory()
    clock = Clock()
    tracker = tracker_at(clock, history)
    for sitting in range(3):
        hear(tracker, f"voice-{sitting}", str(sitting), chair=True)
        clock.pass_days(1)

    def drawn(listed: list[str]) -> Draw:
        copy = tracker_at(clock, MemoryHistory.copy_of(history))
        selector = WeightedVoiceSelector(copy, characteristics=alike(7))
        return selector.draw(listed, count, "finance", session_seed=seed)

    assert drawn(names) == drawn(sorted(names))


def test_another_seed_draws_another_circle() -> None:
    selector = WeightedVoiceSelector(tracker_at(Clock()), characteristics=alike(9))
    circles = {
        frozenset(selector.select_voices(list(alike(9)), 3, session_seed=str(n))[0]) for n in range(30)
    }
    assert len(circles) > 10
    fresh = {selector.draw(list(alike(9)), 3).seed for _ in range(3)}
    assert len(fresh) == 3


def test_draws_follow_the_weights() -> None:
    clock = Clock()
    tracker = tracker_at(clock)
    for sitting in range(5):
        for voice in ("voice-0", "voice-1"):
            hear(tracker, voice, str(sitting))
    selector = WeightedVoiceSelector(tracker, characteristics=alike(6))
    drawn = [selector.select_voices(list(alike(6)), 2, session_seed=str(n))[0] for n in range(200)]
    often = sum("voice-2" in ids for ids in drawn)
    seldom = sum("voice-0" in ids for ids in drawn)
    assert seldom * 5 < often


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 5), min_size=5, max_size=5), st.text(min_size=1, max_size=9), st.integers(2, 5)
)
def test_the_chair_rotates_by_duty(served: list[int], seed: str, count: int) -> None:
    clock = Clock()
    tracker = tracker_at(clock)
    for place, times in enumerate(served):
        for sitting in range(times):
            clock.pass_days(1)
            hear(tracker, f"voice-{place}", f"{place}-{sitting}", chair=True)
    clock.pass_days(1)
    selector = WeightedVoiceSelector(tracker, characteristics=alike(5, lineages=5))
    drawn = selector.draw(list(alike(5, lineages=5)), count, session_seed=seed)
    stats = tracker.stats()
    chairs = [get_empty_chair_model(number, drawn.selected) for number in range(2, count + 2)]
    assert chairs[0] == drawn.chair
    assert sorted(filter(None, chairs)) == sorted(drawn.selected)
    duty = [
        (stats[voice].chair_count, stats[voice].last_chair) if voice in stats else (0, 0.0)
        for voice in chairs
        if voice
    ]
    assert duty == sorted(duty, key=lambda one: (one[0], one[1] or 0.0))


def test_without_a_chair_nobody_is_named() -> None:
    selector = WeightedVoiceSelector(tracker_at(Clock()), characteristics=alike(4))
    ids, chair = selector.select_voices(list(alike(4)), 3, "general", False)
    assert len(ids) == 3
    assert chair is None


def test_shadow_mode_records_what_it_would_have_chosen() -> None:
    history = MemoryHistory()
    selector = WeightedVoiceSelector(tracker_at(Clock(), history), characteristics=alike(4), shadow=True)
    ids, _ = selector.select_voices(list(alike(4)), 2)
    (recorded,) = history.draws()
    assert recorded.selected == ids
    assert recorded.used is False
    assert verify_draw(recorded).valid


def test_every_draw_is_recorded_and_verifies() -> None:
    history, clock = MemoryHistory(), Clock()
    tracker = tracker_at(clock, history)
    selector = WeightedVoiceSelector(tracker, characteristics=alike(6), match_expertise=True)
    for sitting in range(10):
        clock.pass_days(1)
        drawn = selector.draw(list(alike(6)), 3, "legal", session_id=str(sitting))
        clock.pass_days(0.01)
        for voice in drawn.selected:
            hear(tracker, voice, str(sitting), chair=voice == drawn.chair, domain="legal")
    assert len(list(history.draws())) == 10
    for recorded in history.draws():
        check = verify_draw(Draw.model_validate_json(recorded.model_dump_json()), history)
        assert check.valid
        assert check.differences == ()


@pytest.mark.parametrize("where", ["memory", "store"])
def test_draws_agree_with_the_history_after_the_clock_was_set_back(where: str, tmp_path: Path) -> None:
    clock = Clock()
    with open_store(str(tmp_path / "circles.db")) as store:
        kept = store.participation.read_as(Participation, Draw)
        tracker = tracker_at(clock, MemoryHistory() if where == "memory" else kept)
        selector = WeightedVoiceSelector(tracker, characteristics=alike(6))
        for sitting in range(8):
            clock.pass_days(1 if sitting != 4 else -30)
            drawn = selector.draw(list(alike(6)), 3, session_id=str(sitting))
            for voice in drawn.selected:
                hear(tracker, voice, str(sitting), chair=voice == drawn.chair)
        checks = [verify_draw(drawn, tracker.history) for drawn in tracker.history.draws()]
    assert len(checks) == 8
    assert {check.valid for check in checks} == {True}
    assert {check.differences for check in checks} == {()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": "another"}, "digest"),
        ({"chair": None}, "the chair belongs to"),
        ({"selected": ("voice-0", "voice-1", "voice-2")}, "recorded is voice-0, voice-1, voice-2"),
        ({"required_count": 2}, "the seed selects"),
        ({"at": 0.0}, "its weight is"),
        ({"method": "coin/1"}, "only knows"),
    ],
)
def test_a_record_that_was_changed_does_not_verify(change: dict[str, object], words: str) -> None:
    clock = Clock()
    tracker = tracker_at(clock)
    hear(tracker, "voice-0", "earlier", chair=True)
    clock.pass_days(1)
    selector = WeightedVoiceSelector(tracker, characteristics=alike(6))
    drawn = selector.draw(list(alike(6)), 3, session_seed="the seed")
    assert verify_draw(drawn).valid
    check = verify_draw(drawn.model_copy(update=change))
    assert not check.valid
    assert any(words in problem for problem in check.problems)


def test_a_history_that_tells_otherwise_is_told_apart_from_a_wrong_draw() -> None:
    selector = WeightedVoiceSelector(tracker_at(Clock()), characteristics=alike(4))
    drawn = selector.draw(list(alike(4)), 2)
    clock = Clock(drawn.at - 1)
    later = tracker_at(clock)
    hear(later, "voice-1", "imported afterwards", chair=True)
    check = verify_draw(drawn, later.history)
    assert check.valid
    assert check.differences == (
        "voice-1: heard 0 times by the draw, 1 by the history",
        "voice-1: heard in the domain 0 times by the draw, 1 by the history",
        "voice-1: in the chair 0 times by the draw, 1 by the history",
    )


def test_a_large_pool_with_scarce_roles() -> None:
    pool = {
        f"m{n}": ModelCharacteristics(f"m{n}", {"pattern_recognition": 0.8}, f"l{n % 3}") for n in range(38)
    }
    pool["time"] = ModelCharacteristics("time", {"temporal_reasoning": 0.9}, "l0")
    pool["layers"] = ModelCharacteristics("layers", {"cross_layer_analysis": 0.9}, "l0")
    selector = WeightedVoiceSelector(tracker_at(Clock()), characteristics=pool)
    for count in (3, 6, 10):
        ids, _ = selector.select_voices(list(pool), count)
        assert {"time", "layers"} <= set(ids)
        assert judge_quorum([pool[name] for name in ids]).valid


@pytest.mark.parametrize(
    ("roles", "lineages", "count", "words"),
    [
        ({"temporal_reasoning": 0.9}, "ab", 2, ["no voice brings cross_layer_analysis"]),
        ({"pattern_recognition": 1.0}, "ab", 2, ["temporal_reasoning", "cross_layer_analysis", "coverage is 2.0 of 5"]),
        (ALL_ROUND, "aa", 2, ["lineages are a, and 2 different ones"]),
        (ALL_ROUND, "ab", 1, ["no 1 of these 2 voices", "ask for 2"]),
        (ALL_ROUND, "ab", 3, ["required_count: 3 of 2 available voices"]),
        (ALL_ROUND, "ab", 0, ["required_count: 0 of 2"]),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(
    roles: dict[str, float], lineages: str, count: int, words: list[str]
) -> None:
    pool = {f"v{n}": ModelCharacteristics(f"v{n}", roles, one) for n, one in enumerate(lineages)}
    selector = WeightedVoiceSelector(tracker_at(Clock()), characteristics=pool)
    with pytest.raises(ConfigError) as refused:
        selector.select_voices(list(pool), count)
    for word in words:
        assert word in str(refused.value)


def test_a_pool_that_needs_more_seats_says_how_many() -> None:
    pool = {
        "a": ModelCharacteristics("a", {"temporal_reasoning": 0.9}, "x"),
        "b": ModelCharacteristics("b", {"cross_layer_analysis": 0.9}, "x"),
        "c": ModelCharacteristics("c", {"pattern_recognition": 0.9}, "y"),
    }
    selector = WeightedVoiceSelector(tracker_at(Clock()), characteristics=pool)
    with pytest.raises(ConfigError, match=r"no 2 of these 3 voices form a quorum.*; ask for 3"):
        selector.select_voices(list(pool), 2)


def test_bad_pools_and_domains() -> None:
    selector = WeightedVoiceSelector(tracker_at(Clock()), characteristics=alike(3))
    with pytest.raises(ConfigError, match="listed twice"):
        selector.select_voices(["voice-0", "voice-0"], 2)
    with pytest.raises(UnknownModelError, match="'stranger' is not in the catalog"):
        selector.select_voices(["voice-0", "stranger"], 2)
    with pytest.raises(ConfigError, match="session_seed: is empty"):
        selector.select_voices(["voice-0", "voice-1"], 2, session_seed="")
    with pytest.raises(ConfigError, match="decision_domain: 'Obey me!' is not a domain name"):
        selector.select_voices(["voice-0", "voice-1"], 2, "Obey me!")
    experiment = WeightedVoiceSelector(tracker_at(Clock()), rules=None)
    assert len(experiment.select_voices(["stranger", "another"], 2)[0]) == 2


def test_other_rules_hold_too() -> None:
    rules = QuorumRules(min_cognitive_coverage=5.0, min_provider_groups=3)
    pool = alike(9, lineages=3)
    selector = WeightedVoiceSelector(tracker_at(Clock()), characteristics=pool, rules=rules)
    for seed in range(20):
        drawn = selector.draw(list(pool), 3, session_seed=str(seed))
        assert len({pool[name].provider_lineage for name in drawn.selected}) == 3
        assert verify_draw(drawn).valid
