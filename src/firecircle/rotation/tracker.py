"""The participation history for rotation: when each voice was heard, and with what quality."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from pydantic import Field, ValidationError

from firecircle.circle.result import FireCircleResult
from firecircle.rotation.empty_chair import require_domain
from firecircle.rotation.history import Draw, Participation, ParticipationHistory, Tally
from firecircle.shapes import Shape, Text, config_error

if TYPE_CHECKING:
    from firecircle.store.opening import Store

CHAIR, VOICE, RESERVE = "empty_chair", "voice", "reserve"


class DomainStats(Shape):
    """One voice's record in one domain."""

    count: int = 0
    quality: float | None = None
    """The mean quality of its contributions; None if it was never measured."""
    measured: int = 0


class VoiceStats(Shape):
    """One voice's record in the whole history."""

    voice_id: Text
    count: int = 0
    last_heard: float | None = None
    chair_count: int = 0
    last_chair: float | None = None
    domains: dict[Text, DomainStats] = Field(default_factory=dict)


def stored_history(store: Store | None = None) -> ParticipationHistory:
    """The participation history in a store; by default the user's own."""
    from firecircle.store.opening import open_store

    return (store or open_store()).participation.read_as(Participation, Draw)


class VoiceHistoryTracker:
    """Records which voice sat in which circle and held the chair, and counts what a draw needs."""

    def __init__(
        self, history: ParticipationHistory | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        """By default it uses the history in the user's store, as the command line does."""
        self.history = stored_history() if history is None else history
        self.clock = clock

    def record_participation(
        self,
        voice_id: str,
        session_id: str | UUID,
        decision_domain: str,
        role_played: str,
        contribution_quality: float | None,
        was_empty_chair: bool,
    ) -> Participation:
        """Save that a voice took part in a sitting, now."""
        try:
            row = Participation(
                voice_id=voice_id,
                session_id=str(session_id),
                decision_domain=require_domain(decision_domain),
                role_played=role_played,
                contribution_quality=contribution_quality,
                was_empty_chair=was_empty_chair,
                at=self.clock(),
            )
        except ValidationError as invalid:
            raise config_error(invalid, "participation") from None
        self.history.append(row)
        return row

    def record_circle(self, result: FireCircleResult, decision_domain: str) -> tuple[Participation, ...]:
        """Save which voices took part in a circle, with or without a verdict.

        A voice lost before it spoke was not heard. The rows have the time the circle ended, so recording it
        again gives the same rows.
        """
        rows = participations_in(result, require_domain(decision_domain))
        for row in rows:
            self.history.append(row)
        return rows

    def stats_of(self, voice_id: str) -> VoiceStats:
        """The record of this voice."""
        return self.stats([voice_id])[voice_id]

    def stats(self, voices: Iterable[str] | None = None) -> dict[str, VoiceStats]:
        """The records of these voices, or of all in the history."""
        names = None if voices is None else list(voices)
        return stats_in(self.history.tallies(names), names or ())


def participations_in(result: FireCircleResult, decision_domain: str) -> tuple[Participation, ...]:
    """A row for every voice that spoke in a circle."""
    chairs = {held.occupied_chair for held in result.dialogue_history}
    reserves = {seated.model for seated in result.substitutions}
    spoke = dict.fromkeys(
        evaluation.model for held in result.dialogue_history for evaluation in held.evaluations
    )
    return tuple(
        Participation(
            voice_id=voice,
            session_id=sitting_of(result),
            decision_domain=decision_domain,
            role_played=CHAIR if voice in chairs else RESERVE if voice in reserves else VOICE,
            contribution_quality=result.voice_scores.get(voice, 0.0) if result.patterns else None,
            was_empty_chair=voice in chairs,
            at=result.started_at + result.duration_seconds,
        )
        for voice in spoke
    )


def sitting_of(result: FireCircleResult) -> str:
    """The id of a circle's sitting; a repeatable circle always has the same id."""
    return result.circle_id if result.config.seed is None else f"{result.circle_id}@{result.started_at:.6f}"


def stats_in(tallies: Iterable[Tally], voices: Iterable[str] = ()) -> dict[str, VoiceStats]:
    """The records of these voices and all others in the tallies."""
    by_voice: dict[str, list[Tally]] = {voice: [] for voice in voices}
    for tally in tallies:
        by_voice.setdefault(tally.voice_id, []).append(tally)
    return {voice: _stats(voice, its) for voice, its in by_voice.items()}


def _stats(voice_id: str, tallies: list[Tally]) -> VoiceStats:
    chairs = [tally.last_chair for tally in tallies if tally.last_chair is not None]
    return VoiceStats(
        voice_id=voice_id,
        count=sum(tally.count for tally in tallies),
        last_heard=max((tally.last_heard for tally in tallies), default=None),
        chair_count=sum(tally.chair_count for tally in tallies),
        last_chair=max(chairs, default=None),
        domains={
            tally.decision_domain: DomainStats(
                count=tally.count, quality=tally.quality, measured=tally.measured
            )
            for tally in tallies
        },
    )
