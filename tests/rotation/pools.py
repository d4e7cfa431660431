"""Pools of declared voices to draw from, and a clock that stands still until it is moved."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from firecircle.catalog import ROLE_WEIGHTS, ModelCharacteristics
from firecircle.rotation.tracker import MemoryHistory, ParticipationHistory, VoiceHistoryTracker

DAY = 86_400.0
SIX = (
    *("embedded:time", "embedded:layers", "embedded:hidden", "embedded:extraction", "embedded:authority"),
    "embedded:ngrams",
)
"""Six voices that are quick and need nothing: older names of the rules, and the n-grams."""
ALL_ROUND = {"temporal_reasoning": 0.9, "cross_layer_analysis": 0.9}


@dataclass
class Clock:
    """The time of a test."""

    now: float = 1_000 * DAY

    def __call__(self) -> float:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += days * DAY


def tracker_at(clock: Clock, history: ParticipationHistory | None = None) -> VoiceHistoryTracker:
    return VoiceHistoryTracker(MemoryHistory() if history is None else history, clock=clock)


def hear(
    tracker: VoiceHistoryTracker, voice: str, sitting: str, *, chair: bool = False, domain: str = "general"
) -> None:
    tracker.record_participation(voice, sitting, domain, "voice", None, chair)


def alike(count: int, lineages: int = 2) -> dict[str, ModelCharacteristics]:
    """Voices that all bring the same, of several lineages in turn."""
    return {
        f"voice-{n}": ModelCharacteristics(f"voice-{n}", ALL_ROUND, f"lineage-{n % lineages}")
        for n in range(count)
    }


def pools(fewest: int = 2, most: int = 9) -> st.SearchStrategy[dict[str, ModelCharacteristics]]:
    """Pools of any kind, quorum or not."""
    roles = st.dictionaries(
        st.sampled_from(list(ROLE_WEIGHTS)), st.sampled_from((0.2, 0.5, 0.6, 0.9, 1.0)), max_size=4
    )
    voice = st.tuples(roles, st.sampled_from(("us", "cn", "open")))
    return st.lists(voice, min_size=fewest, max_size=most).map(
        lambda drawn: {
            f"v{n}": ModelCharacteristics(f"v{n}", shares, lineage)
            for n, (shares, lineage) in enumerate(drawn)
        }
    )
