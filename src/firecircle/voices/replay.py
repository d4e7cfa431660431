"""Voices that repeat recorded answers: any stored circle can be replayed, call by call."""

from __future__ import annotations

import asyncio
import math
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from firecircle.circle.result import CallRecord, CircleRecord
from firecircle.circle.voice import Reply, Turn, Usage
from firecircle.errors import FailureKind, VoiceError


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a stored circle: its answer, or how it failed."""

    text: str | None
    call: CallRecord
    trace: str | None = None
    violation_probability: float | None = None
    message: str = "failed in the recording"
    called_off: bool = False
    """Whether the call was cancelled because another voice had failed."""

    @property
    def usage(self) -> Usage:
        """What the call consumed."""
        return Usage(
            tokens_in=self.call.tokens_in,
            tokens_cached=self.call.tokens_cached,
            tokens_out=self.call.tokens_out,
            cost_usd=self.call.cost_usd,
            estimated_tokens=self.call.estimated_tokens,
            estimated_usd=self.call.estimated_usd,
        )

    def play(self) -> Reply:
        """The same answer or the same failure."""
        if self.text is None:
            failed = self.call.failed
            kind: FailureKind = "raised" if failed is None or failed == "cancelled" else failed
            raise VoiceError(self.message, kind=kind, attempts=self.call.attempts, usage=self.usage)
        return Reply(
            self.text,
            reasoning_trace=self.trace,
            usage=self.usage,
            attempts=self.call.attempts,
            finished=self.call.finished,
            cut_short=self.call.cut_short,
            cached=self.call.cached,
            asked_id=self.call.asked_id,
            answered_by=self.call.answered_by,
            violation_probability=self.violation_probability,
        )

    async def wait_until_called_off(self) -> NoReturn:
        """Wait until the voice that failed in the recording has failed again."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as called_off:
            called_off.usage = self.usage  # type: ignore[attr-defined]  # where `usage_of` looks
            raise
        raise AssertionError("no code sets this event")


class RecordedVoice:
    """Plays its calls back in order."""

    def __init__(self, model: str, calls: list[RecordedCall]) -> None:
        self._model = model
        self._calls = deque(calls)

    def estimate(self, turn: Turn) -> Usage:
        """Nothing for a recorded call, above any budget otherwise: a replay ends where its budget did."""
        was_made = bool(self._calls) and self._calls[0].call.round_number == turn.round_number
        return Usage(cost_usd=0.0) if was_made else Usage(tokens_in=sys.maxsize, cost_usd=math.inf)

    async def speak(self, turn: Turn) -> Reply:
        """The next recorded answer, for any question."""
        if not self._calls:
            raise VoiceError(
                f"the recording has no further answer of {self._model}", kind="raised", model=self._model
            )
        recorded = self._calls.popleft()
        if recorded.called_off:
            await recorded.wait_until_called_off()
        return recorded.play()


def recorded_voices(record: CircleRecord) -> dict[str, RecordedVoice]:
    """A voice for every model called in a stored circle, including the classifier."""
    played: dict[str, list[RecordedCall]] = {}
    for recorded in _calls_in_order(record):
        played.setdefault(recorded.call.model, []).append(recorded)
    everybody = (*record.config.models, *record.config.reserves, record.config.classifier_model)
    return {model: RecordedVoice(model, played.get(model, [])) for model in everybody if model}


def _calls_in_order(record: CircleRecord) -> Iterator[RecordedCall]:
    """The calls with their answers, those of each voice in order."""
    evaluations = {
        (evaluation.model, evaluation.round_number): evaluation
        for held in record.dialogue_history
        for evaluation in held.evaluations
    }
    failures = {(failure.model, failure.round_number): failure for failure in record.failures}
    replies: dict[tuple[str, int | None], Iterator[str]] = {
        key: iter(evaluation.raw_replies) for key, evaluation in evaluations.items()
    }
    classifier = iter(record.classifier_replies)
    for call in record.calls:
        key = (call.model, call.round_number)
        if call.purpose == "classify":
            yield RecordedCall(None if call.failed else next(classifier, None), call)
        elif call.failed:
            message = failures[key].message if key in failures else "failed in the recording"
            called_off = call.failed == "cancelled" and record.config.strict and bool(record.failures)
            yield RecordedCall(None, call, message=message, called_off=called_off)
        elif key in evaluations:
            evaluation = evaluations[key]
            probability = evaluation.falsehood if evaluation.read_as == "logprobs" else None
            # A second unreadable answer was not always saved.
            yield RecordedCall(next(replies[key], None), call, evaluation.reasoning_trace, probability)
        elif key in failures:
            yield RecordedCall(failures[key].raw_reply, call)
