"""The events of a circle in progress, for a command line, a viewer or a store.

They include everything that is said or paid for: `firecircle.circle.ledger` builds the record of a circle
from its events alone, also when its process is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from firecircle.circle.quorum import QuorumVerdict
from firecircle.circle.result import (
    CallRecord,
    CircleRecord,
    Failure,
    FireCircleResult,
    RoundKind,
    Substitution,
    VoicePrompt,
)
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.shapes import Shape, Text


class CircleConvened(Shape):
    """The circle starts."""

    kind: Literal["circle_convened"] = "circle_convened"
    circle_id: Text
    models: tuple[Text, ...]
    max_rounds: int
    record: CircleRecord
    """The circle's record before any answer."""


class RoundStarted(Shape):
    """All active voices are asked."""

    kind: Literal["round_started"] = "round_started"
    round_number: int
    round_kind: RoundKind
    models: tuple[Text, ...]
    empty_chair_model: Text | None
    prompt_used: Text
    """The standard question of this round."""
    voice_prompts: tuple[VoicePrompt, ...]
    timestamp: float


class ReserveAsked(Shape):
    """A reserve is asked in a round that others have already answered."""

    kind: Literal["reserve_asked"] = "reserve_asked"
    round_number: int
    model: Text
    prompt: VoicePrompt


class VoiceRetried(Shape):
    """A voice is about to retry."""

    kind: Literal["voice_retried"] = "voice_retried"
    round_number: int
    model: Text
    attempt: int
    reason: Text
    wait_seconds: float


class VoiceAnswered(Shape):
    """A voice gave a valid answer."""

    kind: Literal["voice_answered"] = "voice_answered"
    round_number: int
    model: Text
    evaluation: NeutrosophicEvaluation
    calls: tuple[CallRecord, ...]


class VoiceFailed(Shape):
    """A voice was lost for good."""

    kind: Literal["voice_failed"] = "voice_failed"
    round_number: int
    model: Text
    failure: Failure
    calls: tuple[CallRecord, ...]


class VoiceRecruited(Shape):
    """A reserve joined the circle."""

    kind: Literal["voice_recruited"] = "voice_recruited"
    round_number: int
    model: Text
    substitution: Substitution


class QuorumChecked(Shape):
    """The quorum of the remaining voices was checked."""

    kind: Literal["quorum_checked"] = "quorum_checked"
    round_number: int
    verdict: QuorumVerdict


class RoundClosed(Shape):
    """All voices of this round have answered or failed."""

    kind: Literal["round_closed"] = "round_closed"
    round_number: int
    f_score_mean: float
    f_score_stddev: float
    duration_seconds: float


class CircleClosed(Shape):
    """The circle is over; `result` is partial if it was aborted or cancelled."""

    kind: Literal["circle_closed"] = "circle_closed"
    result: FireCircleResult


Event = (
    CircleConvened
    | RoundStarted
    | ReserveAsked
    | VoiceRetried
    | VoiceAnswered
    | VoiceFailed
    | VoiceRecruited
    | QuorumChecked
    | RoundClosed
    | CircleClosed
)
Listener = Callable[[Event], None]
