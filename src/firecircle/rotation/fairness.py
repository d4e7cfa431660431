"""Is everybody heard? Participation and chair duty in numbers, over a pool of voices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from firecircle.rotation.history import MemoryHistory, Participation, ParticipationHistory
from firecircle.rotation.tracker import VoiceStats, stats_in
from firecircle.shapes import Shape, Text


class Evenness(Shape):
    """How evenly something is shared out."""

    least: int
    most: int
    spread: int
    """The most minus the least."""
    gini: float
    """0 when all have the same, towards 1 when one has everything."""
    jain: float
    """1 when all have the same, 1/n when one of n has everything."""


class FairnessReport(Shape):
    """Who was heard how often, and how even that is."""

    sittings: int
    voices: tuple[VoiceStats, ...]
    """The most heard first."""
    heard: Evenness
    chairs: Evenness
    never_heard: tuple[Text, ...]
    never_in_chair: tuple[Text, ...]


def fairness(rows: Iterable[Participation], pool: Sequence[str] = ()) -> FairnessReport:
    """The report over a pool; without one, over everybody who was ever heard."""
    return fairness_in(MemoryHistory(rows), pool)


def fairness_in(history: ParticipationHistory, pool: Sequence[str] = ()) -> FairnessReport:
    """The same of a history, which is not read row by row."""
    stats = list(stats_in(history.tallies(pool or None), pool).values())
    stats.sort(key=lambda one: (-one.count, one.voice_id))
    return FairnessReport(
        sittings=history.sittings(pool or None),
        voices=tuple(stats),
        heard=evenness({one.voice_id: one.count for one in stats}),
        chairs=evenness({one.voice_id: one.chair_count for one in stats}),
        never_heard=tuple(one.voice_id for one in stats if not one.count),
        never_in_chair=tuple(one.voice_id for one in stats if not one.chair_count),
    )


def evenness(counts: Mapping[str, int]) -> Evenness:
    """Gini's and Jain's indices of the counts; nothing shared out at all counts as even."""
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
