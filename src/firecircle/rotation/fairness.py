"""Fairness: participation and chair duty in numbers, from the history and from simulated draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from firecircle.catalog import ModelCharacteristics
from firecircle.circle.config import get_empty_chair_model
from firecircle.circle.quorum import QuorumRules
from firecircle.rotation.affinity import Affinity
from firecircle.rotation.empty_chair import GENERAL
from firecircle.rotation.history import Draw, MemoryHistory, Participation, ParticipationHistory
from firecircle.rotation.selector import DEFAULT_RULES, WeightedVoiceSelector
from firecircle.rotation.tracker import CHAIR, VOICE, VoiceHistoryTracker, VoiceStats, stats_in
from firecircle.shapes import Shape, Text


class Evenness(Shape):
    """How evenly something is distributed."""

    least: int
    most: int
    spread: int
    """The maximum minus the minimum."""
    gini: float
    """0 if all have the same, near 1 if one has everything."""
    jain: float
    """1 if all have the same, 1/n if one of n has everything."""


class FairnessReport(Shape):
    """How often each voice was heard, and how even that is."""

    sittings: int
    voices: tuple[VoiceStats, ...]
    """Most heard first."""
    heard: Evenness
    chairs: Evenness
    never_heard: tuple[Text, ...]
    never_in_chair: tuple[Text, ...]


def fairness(rows: Iterable[Participation], pool: Sequence[str] = ()) -> FairnessReport:
    """The report on a pool; by default on every voice ever heard."""
    return fairness_in(MemoryHistory(rows), pool)


def fairness_in(history: ParticipationHistory, pool: Sequence[str] = ()) -> FairnessReport:
    """The same from a history, without reading it row by row."""
    stats = list(stats_in(history.tallies(pool or None), pool).values())
    stats.sort(key=lambda voice: (-voice.count, voice.voice_id))
    return FairnessReport(
        sittings=history.sittings(pool or None),
        voices=tuple(stats),
        heard=evenness({voice.voice_id: voice.count for voice in stats}),
        chairs=evenness({voice.voice_id: voice.chair_count for voice in stats}),
        never_heard=tuple(voice.voice_id for voice in stats if not voice.count),
        never_in_chair=tuple(voice.voice_id for voice in stats if not voice.chair_count),
    )


def evenness(counts: Mapping[str, int]) -> Evenness:
    """Gini's and Jain's indices of the counts; all zeros count as even."""
    values = sorted(counts.values())
    total = sum(values)
    if not total:
        return Evenness(least=0, most=0, spread=0, gini=0.0, jain=1.0)
    size = len(values)
    ranked = sum(place * value for place, value in enumerate(values, start=1))
    return Evenness(
        least=values[0],
        most=values[-1],
        spread=values[-1] - values[0],
        gini=max(0.0, 2 * ranked / (size * total) - (size + 1) / size),
        jain=total**2 / (size * sum(value**2 for value in values)),
    )


DAY = 86_400.0


class Simulation(Shape):
    """Simulated draws, and the fairness after them."""

    draws: tuple[Draw, ...]
    before: FairnessReport
    after: FairnessReport


def simulate_sittings(
    history: ParticipationHistory,
    pool: Sequence[str],
    count: int,
    sittings: int,
    *,
    start: float,
    seed: str,
    domain: str = GENERAL,
    every_seconds: float = DAY,
    rounds: int = 3,
    characteristics: Mapping[str, ModelCharacteristics] | None = None,
    rules: QuorumRules | None = DEFAULT_RULES,
    match_expertise: bool = False,
    affinity: Sequence[Affinity] = (),
) -> Simulation:
    """Draw this many circles in sequence; every voice answers, and every round runs.

    Known pairs stay the same: simulated circles find no patterns.
    """
    now = start
    copy = MemoryHistory.copy_of(history)
    tracker = VoiceHistoryTracker(copy, clock=lambda: now)
    selector = WeightedVoiceSelector(
        tracker,
        characteristics=characteristics,
        rules=rules,
        match_expertise=match_expertise,
        affinity=affinity,
    )
    before = fairness_in(copy, pool)
    draws = []
    for number in range(1, sittings + 1):
        drawn = selector.draw(pool, count, domain, session_seed=f"{seed}/{number}")
        draws.append(drawn)
        chairs = {get_empty_chair_model(held, drawn.selected) for held in range(2, rounds + 1)}
        for voice in drawn.selected:
            role = CHAIR if voice in chairs else VOICE
            tracker.record_participation(voice, drawn.session_id, domain, role, None, voice in chairs)
        now += every_seconds
    return Simulation(draws=tuple(draws), before=before, after=fairness_in(copy, pool))
