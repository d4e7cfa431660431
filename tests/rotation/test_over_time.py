"""Over many sittings everybody is heard and takes the chair."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firecircle import FireCircleConfig, fire_circle_evaluate
from firecircle.catalog import ModelCharacteristics
from firecircle.rotation.selector import WeightedVoiceSelector, evenness, fairness, rotated, simulate_sittings
from firecircle.rotation.tracker import MemoryHistory, VoiceHistoryTracker, participations_in, sitting_of
from tests.rotation.pools import DAY, Clock, alike, hear, tracker_at
from tests.scripted import PROMPT, Script

WIDEST = 6
"""Far more than the two or three by which interchangeable voices differ in practice."""


@settings(max_examples=25, deadline=None)
@given(
    st.integers(3, 8),
    st.integers(2, 4),
    st.text(max_size=9),
    st.sampled_from((60.0, DAY, 9 * DAY)),
    st.integers(2, 3),
)
def test_everybody_is_heard_and_takes_the_chair(
    size: int, count: int, seed: str, every: float, rounds: int
) -> None:
    pool = alike(size, lineages=size)
    outcome = simulate_sittings(
        MemoryHistory(),
        list(pool),
        min(count, size),
        30,
        start=0.0,
        seed=seed,
        every_seconds=every,
        rounds=rounds,
        characteristics=pool,
    )
    assert outcome.after.never_heard == ()
    assert outcome.after.never_in_chair == ()
    assert outcome.after.heard.spread <= WIDEST
    assert outcome.after.chairs.spread <= WIDEST


@settings(max_examples=10, deadline=None)
@given(st.text(max_size=9))
def test_voices_that_are_interchangeable_for_the_quorum_share_its_seats(seed: str) -> None:
    pool = {
        **{f"time-{n}": ModelCharacteristics(f"time-{n}", {"temporal_reasoning": 0.9}, "a") for n in range(3)},
        **{f"layer-{n}": ModelCharacteristics(f"layer-{n}", {"cross_layer_analysis": 0.9}, "b") for n in range(5)},
    }  # fmt: skip
    outcome = simulate_sittings(
        MemoryHistory(), list(pool), 2, 45, start=0.0, seed=seed, characteristics=pool
    )
    counts = {voice.voice_id: voice.count for voice in outcome.after.voices}
    for kind in ("time", "layer"):
        shared = [count for voice, count in counts.items() if voice.startswith(kind)]
        assert sum(shared) == 45
        assert max(shared) - min(shared) <= WIDEST


def test_a_newcomer_joins_without_taking_over() -> None:
    clock = Clock()
    tracker = tracker_at(clock)
    for sitting in range(50):
        for voice in list(alike(6))[:5]:
            hear(tracker, voice, str(sitting))
        clock.pass_days(1)
    outcome = simulate_sittings(
        tracker.history, list(alike(6)), 2, 30, start=clock.now, seed="s", characteristics=alike(6)
    )
    seated = {voice.voice_id: voice.count for voice in outcome.after.voices}
    assert 10 <= seated.pop("voice-5") <= 27
    assert min(seated.values()) >= 50 + 3
    assert outcome.before.never_heard == ("voice-5",)


def test_a_simulation_leaves_the_history_alone() -> None:
    history = MemoryHistory()
    hear(tracker_at(Clock(), history), "voice-0", "one")
    outcome = simulate_sittings(
        history, list(alike(4)), 2, 5, start=Clock().now, seed="s", characteristics=alike(4)
    )
    assert len(list(history.participations())) == 1
    assert list(history.draws()) == []
    assert len(outcome.draws) == 5
    again = simulate_sittings(
        history, list(alike(4)), 2, 5, start=Clock().now, seed="s", characteristics=alike(4)
    )
    assert again == outcome


def test_fairness_in_numbers() -> None:
    even = evenness({"a": 3, "b": 3})
    assert (even.spread, even.gini, even.jain) == (0, 0.0, 1.0)
    one_has_all = evenness({"a": 8, "b": 0, "c": 0, "d": 0})
    assert (one_has_all.spread, one_has_all.gini, one_has_all.jain) == (8, 0.75, 0.25)
    assert evenness({}).jain == 1.0
    tracker = tracker_at(Clock())
    hear(tracker, "a", "1", chair=True)
    hear(tracker, "b", "1")
    hear(tracker, "a", "2")
    report = fairness(tracker.history.participations(), ("a", "c"))
    assert [(voice.voice_id, voice.count, voice.chair_count) for voice in report.voices] == [
        ("a", 2, 1),
        ("c", 0, 0),
    ]
    assert report.never_heard == ("c",)
    assert len(fairness(tracker.history.participations()).voices) == 2


async def test_a_held_circle_is_remembered_as_it_really_went() -> None:
    """The drawn circle is held, a voice is lost before it speaks, and the history knows who was heard."""
    history, clock = MemoryHistory(), Clock()
    tracker = VoiceHistoryTracker(history, clock=clock)
    pool = alike(5, lineages=5)
    selector = WeightedVoiceSelector(tracker, characteristics=pool)
    drawn = selector.draw(list(pool), 4, "legal", session_seed="s")
    usual = FireCircleConfig(
        models=("voice-0", "voice-1"),
        reserves=("voice-2", "voice-3", "voice-4"),
        model_characteristics=pool,
        max_rounds=2,
    )
    config = rotated(usual, drawn)
    assert config.models == drawn.selected
    assert set(config.reserves) == set(usual.reserves) - set(drawn.selected)
    silent = drawn.selected[3]
    lines: dict[str, list[object]] = {voice: [0.2, 0.9] for voice in drawn.selected}
    lines[silent] = [RuntimeError("gone")]
    result = await fire_circle_evaluate(PROMPT, config, caller=Script(lines))
    rows = tracker.record_circle(result, "legal")
    assert {row.voice_id for row in rows} == set(drawn.selected) - {silent}
    assert [row.voice_id for row in rows if row.was_empty_chair] == [drawn.chair]
    assert {row.role_played for row in rows} == {"voice", "empty_chair"}
    assert {row.contribution_quality for row in rows} == {None}
    stats = tracker.stats_of(drawn.chair or "")
    assert (stats.count, stats.chair_count) == (1, 1)
    assert stats.last_heard == pytest.approx(result.started_at + result.duration_seconds)
    assert stats.domains["legal"].count == 1
    assert participations_in(result, "legal") == rows
    shadow = drawn.model_copy(update={"used": False})
    assert rotated(usual, shadow) is usual


async def test_a_repeatable_circle_sits_anew_each_time() -> None:
    config = FireCircleConfig.embedded(seed=7, max_rounds=1)
    first = await fire_circle_evaluate(PROMPT, config)
    second = await fire_circle_evaluate(PROMPT, config)
    assert first.circle_id == second.circle_id
    assert sitting_of(first) != sitting_of(second)
    tracker = tracker_at(Clock())
    tracker.record_circle(first, "general")
    tracker.record_circle(second, "general")
    assert tracker.stats_of("embedded:rules").count == 2
