"""A weight says how much a voice is due: silence raises it, sittings lower it, and both are bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firecircle.rotation.drawing import CEILING, FLOOR, HALF_LIFE, MOST_AHEAD, recency
from firecircle.rotation.selector import WeightedVoiceSelector
from tests.rotation.pools import DAY, Clock, alike, hear, tracker_at

days = st.floats(min_value=0.0, max_value=4000.0)


def weights_now(
    tracker_clock: Clock, heard: dict[str, list[float]], domain: str = "general"
) -> dict[str, float]:
    """The weights of a pool whose voices were heard so many days ago."""
    clock = tracker_clock
    tracker = tracker_at(clock)
    now = clock.now
    for voice, ago in heard.items():
        for number, gone in enumerate(ago):
            clock.now = now - gone * DAY
            hear(tracker, voice, f"{voice}-{number}")
    clock.now = now
    selector = WeightedVoiceSelector(tracker, characteristics=alike(len(heard)))
    return {one.voice_id: one.weight for one in selector.candidates(list(heard), domain, now)}


@given(st.lists(st.lists(days, min_size=1, max_size=12), min_size=1, max_size=6))
def test_a_never_heard_voice_weighs_most(histories: list[list[float]]) -> None:
    heard: dict[str, list[float]] = {f"voice-{n}": ago for n, ago in enumerate(histories, start=1)}
    weights = weights_now(Clock(), {"voice-0": [], **heard})
    assert weights["voice-0"] == 1.0
    assert all(weight < 1.0 for voice, weight in weights.items() if voice != "voice-0")


@given(st.lists(days, min_size=1, max_size=15), st.data())
def test_weights_fall_with_participation(ago: list[float], data: st.DataObject) -> None:
    another = data.draw(st.floats(min_value=0.0, max_value=max(ago)))
    before = weights_now(Clock(), {"voice-0": ago, "voice-1": []})["voice-0"]
    after = weights_now(Clock(), {"voice-0": [*ago, another], "voice-1": []})["voice-0"]
    assert after < before if len(ago) < MOST_AHEAD else after <= before


@given(days, days)
def test_weights_rise_with_silence_up_to_a_bound(one: float, other: float) -> None:
    short, long = sorted((one, other))
    rested = weights_now(Clock(), {"voice-0": [long], "voice-1": [0.0]})["voice-0"]
    fresh = weights_now(Clock(), {"voice-0": [short], "voice-1": [0.0]})["voice-0"]
    assert fresh <= rested <= CEILING
    if long - short > 1e-3 and long < 200:
        assert fresh < rested


def test_half_of_the_way_back_in_a_week() -> None:
    assert HALF_LIFE == 7 * DAY
    assert recency(0.0) == pytest.approx(FLOOR)
    assert recency(HALF_LIFE) == pytest.approx((FLOOR + CEILING) / 2)
    assert recency(-DAY) == pytest.approx(FLOOR)
    assert recency(None) == 1.0


def test_the_domain_counts_too() -> None:
    clock = Clock()
    tracker = tracker_at(clock)
    hear(tracker, "voice-0", "a", domain="finance")
    hear(tracker, "voice-1", "b", domain="legal")
    clock.pass_days(1)
    selector = WeightedVoiceSelector(tracker, characteristics=alike(2))
    finance = {
        one.voice_id: one.weight for one in selector.candidates(["voice-0", "voice-1"], "finance", clock.now)
    }
    assert finance["voice-0"] < finance["voice-1"]
    general = {
        one.voice_id: one.weight for one in selector.candidates(["voice-0", "voice-1"], "general", clock.now)
    }
    assert general["voice-0"] == general["voice-1"]


def test_a_newcomer_does_not_sit_until_it_has_caught_up() -> None:
    old_hands = {f"voice-{n}": [30.0] * 100 for n in range(1, 4)}
    weights = weights_now(Clock(), {"voice-0": [0.0], **old_hands})
    assert weights["voice-0"] < 3 * weights["voice-1"]
