"""What a circle has asked, heard and spent, by round, and the record built from it.

A record can also be built from events, which is all that remains when the process is gone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from firecircle.circle import events
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.hearing import Hearing
from firecircle.circle.result import (
    CallRecord,
    CircleRecord,
    DialogueRound,
    Failure,
    QuorumCheck,
    RoundKind,
    Substitution,
    VoicePrompt,
    active_voices,
)
from firecircle.evaluation import NeutrosophicEvaluation, spread


@dataclass(slots=True)
class RoundPage:
    """One round in progress."""

    number: int
    kind: RoundKind
    chair: str | None
    question: str
    prompts: dict[str, VoicePrompt] = field(default_factory=dict)
    hearings: dict[str, Hearing] = field(default_factory=dict)
    opened_at: float = field(default_factory=time.time)
    opened: float = field(default_factory=time.monotonic)
    duration: float = 0.0
    _on_record: tuple[tuple[int, int, float], DialogueRound] | None = None

    @property
    def asked(self) -> tuple[str, ...]:
        """The voices asked, in list order."""
        return tuple(self.prompts)

    @property
    def evaluations(self) -> tuple[NeutrosophicEvaluation, ...]:
        """The evaluations, in list order."""
        return tuple([hearing.evaluation for hearing in self.heard if hearing.evaluation])

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The failures, in list order."""
        return tuple([hearing.failure for hearing in self.heard if hearing.failure])

    @property
    def calls(self) -> tuple[CallRecord, ...]:
        """Every call so far, in list order."""
        return tuple([call for hearing in self.heard for call in hearing.calls])

    @property
    def heard(self) -> list[Hearing]:
        """The hearings, in list order."""
        return [self.hearings[model] for model in self.prompts if model in self.hearings]

    @property
    def occupied_chair(self) -> str | None:
        """The voice in the chair, once it has spoken from it."""
        return self.chair if any(evaluation.model == self.chair for evaluation in self.evaluations) else None

    @property
    def under_way(self) -> tuple[VoicePrompt, ...]:
        """The questions without an answer yet."""
        over = {model for model, hearing in self.hearings.items() if hearing.is_over}
        return tuple(asked for model, asked in self.prompts.items() if model not in over)

    def close(self) -> None:
        """Record the duration of the round."""
        self.duration = time.monotonic() - self.opened

    def as_round(self) -> DialogueRound:
        """The round as recorded; cached until more is said or the round is closed."""
        state = (len(self.prompts), sum(hearing.is_over for hearing in self.hearings.values()), self.duration)
        if self._on_record is None or self._on_record[0] != state:
            self._on_record = (state, self._as_round())
        return self._on_record[1]

    def _as_round(self) -> DialogueRound:
        return DialogueRound.assembled(
            round_number=self.number,
            evaluations=self.evaluations,
            empty_chair_model=self.chair,
            prompt_used=self.question,
            convergence_metric=spread(self.evaluations),
            timestamp=self.opened_at,
            kind=self.kind,
            asked_models=self.asked,
            active_models=tuple(evaluation.model for evaluation in self.evaluations),
            voice_prompts=tuple(self.prompts.values()),
            duration_seconds=self.duration,
        )


@dataclass(slots=True)
class Ledger:
    """Everything recorded so far. Pages are only added."""

    config: FireCircleConfig
    pages: list[RoundPage] = field(default_factory=list)
    substitutions: list[Substitution] = field(default_factory=list)
    quorum_checks: list[QuorumCheck] = field(default_factory=list)
    calls_outside_rounds: list[CallRecord] = field(default_factory=list)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Every lost voice so far, by round."""
        return tuple(failure for page in self.pages for failure in page.failures)

    @property
    def active(self) -> tuple[str, ...]:
        """The voices that were never lost."""
        return active_voices(self.config.models, self.substitutions, self.failures)

    @property
    def calls(self) -> tuple[CallRecord, ...]:
        """Every call so far, by round and in list order."""
        made = [call for page in self.pages for call in page.calls]
        return (*made, *self.calls_outside_rounds)

    def rounds(self, before: int | None = None) -> tuple[DialogueRound, ...]:
        """The recorded rounds, or those before a given one."""
        return tuple(page.as_round() for page in self.pages if before is None or page.number < before)

    def added_to(self, opening: CircleRecord) -> CircleRecord:
        """The record of the circle with this opening and everything in the ledger."""
        return opening.model_copy(
            update={
                "dialogue_history": self.rounds(),
                "failures": self.failures,
                "substitutions": tuple(self.substitutions),
                "calls": self.calls,
                "quorum_checks": tuple(self.quorum_checks),
            }
        )

    def last_said(self, model: str, before: int) -> NeutrosophicEvaluation | None:
        """A voice's last evaluation before a round."""
        for page in reversed(self.pages):
            heard = page.hearings.get(model)
            if page.number < before and heard and heard.evaluation:
                return heard.evaluation
        return None

    def last_words(self, of: Sequence[str], before: int) -> list[NeutrosophicEvaluation]:
        """The last evaluation of each of these voices before a round, including lost ones."""
        last = (self.last_said(model, before) for model in of)
        return [evaluation for evaluation in last if evaluation]


def record_from(story: Iterable[events.Event]) -> CircleRecord:
    """The record from events: that of an interrupted circle, or of a closed one its own.

    It lacks calls that were in progress at the end, whose cost is unknown.
    """
    remaining = iter(story)
    first = next(remaining, None)
    if not isinstance(first, events.CircleConvened):
        raise ValueError("the story of a circle begins with its voices being seated")
    ledger = Ledger(first.record.config)
    last_heard = first.record.started_at
    for event in remaining:
        match event:
            case events.CircleClosed():
                facts = {name: getattr(event.result, name) for name in CircleRecord.model_fields}
                return CircleRecord(**facts)
            case events.RoundStarted():
                page = RoundPage(
                    event.round_number, event.round_kind, event.empty_chair_model, event.prompt_used
                )
                page.prompts = {asked.model: asked for asked in event.voice_prompts}
                page.opened_at = last_heard = event.timestamp
                ledger.pages.append(page)
            case events.ReserveAsked():
                ledger.pages[event.round_number - 1].prompts[event.model] = event.prompt
            case events.VoiceAnswered():
                heard = Hearing(event.model, evaluation=event.evaluation, calls=list(event.calls))
                ledger.pages[event.round_number - 1].hearings[event.model] = heard
            case events.VoiceFailed():
                heard = Hearing(event.model, failure=event.failure, calls=list(event.calls))
                ledger.pages[event.round_number - 1].hearings[event.model] = heard
            case events.VoiceRecruited():
                ledger.substitutions.append(event.substitution)
            case events.QuorumChecked():
                check = QuorumCheck(round_number=event.round_number, verdict=event.verdict)
                ledger.quorum_checks.append(check)
            case events.RoundClosed():
                page = ledger.pages[event.round_number - 1]
                page.duration = event.duration_seconds
                last_heard = page.opened_at + page.duration
    return ledger.added_to(first.record).model_copy(
        update={
            "duration_seconds": max(0.0, last_heard - first.record.started_at),
            "stopped": "interrupted",
            "abort_reason": "the process that held this circle ended before the circle did",
        }
    )
