"""Calls on a time line: when each voice was asked, how long it took, what it cost."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.circle.panel import Panel
from firecircle.circle.result import CallRecord, FireCircleResult

WIDTH = 1000.0
"""The time line in its own units; the page stretches it."""
NARROWEST = 2.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One call."""

    call: CallRecord
    x: float
    width: float
    start_seconds: float


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All calls, and the seconds the line spans."""

    bars: tuple[Bar, ...]
    seconds: float


def waterfall(kept: FireCircleResult | Panel) -> Waterfall | None:
    """The line. All voices of a round are asked when it opens; a voice's later calls follow its first."""
    if not kept.calls:
        return None
    opened = {1: 0.0}
    if isinstance(kept, FireCircleResult):
        opened = {held.round_number: held.timestamp - kept.started_at for held in kept.dialogue_history}
    placed: list[tuple[CallRecord, float]] = []
    ends: dict[tuple[str, int], float] = {}
    for call in kept.calls:
        key = (call.model, call.round_number)
        start = ends.get(key, max(0.0, opened.get(call.round_number, kept.duration_seconds)))
        ends[key] = start + call.latency_seconds
        placed.append((call, start))
    span = max([kept.duration_seconds, *ends.values()]) or 1.0
    bars = tuple(
        Bar(
            call,
            round(min(start / span * WIDTH, WIDTH - NARROWEST), 1),
            round(max(NARROWEST, call.latency_seconds / span * WIDTH), 1),
            start,
        )
        for call, start in placed
    )
    return Waterfall(bars, span)
