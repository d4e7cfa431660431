"""What a circle tells while it sits, for a command line, a viewer or a store to follow.

Nothing that is said or paid for is left out: `firecircle.circle.ledger` puts the record of a circle
together from its events alone, also when the process that held it is gone.
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
    """The voices are seated."""

    kind: Literal["circle_convened"] = "circle_convened"
    circle_id: Text
    models: tuple[Text, ...]
    max_rounds: int
    record: CircleRecord
    """The circle's record with nothing said yet."""


class RoundStarted(Shape):
    """Everybody still active is asked."""

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
    """A reserve is heard in a round that others have already answered."""

    kind: Literal["reserve_asked"] = "reserve_asked"
    round_number: int
    model: Text
    prompt: VoicePrompt


class VoiceRetried(Shape):
    """A voice is about to try again."""

    kind: Literal["voice_retried"] = "voice_retried"
    round_number: int
    model: Text
    attempt: int
    reason: Text
    wait_seconds: float


class VoiceAnswered(Shape):
    """A voice spoke and was understood."""

    kind: Literal["voice_answered"] = "voice_answered"
    round_number: int
    model: Text
    evaluation: NeutrosophicEvaluation
    calls: tuple[CallRecord, ...]
    """What it took."""


class VoiceFailed(Shape):
    """A voice was lost for good."""

    kind: Literal["voice_failed"] = "voice_failed"
    round_number: int
    model: Text
    failure: Failure
    calls: tuple[CallRecord, ...]


class VoiceRecruited(Shape):
    """A reserve took a seat."""

    kind: Literal["voice_recruited"] = "voice_recruited"
    round_number: int
    model: Text
    substitution: Substitution


class QuorumChecked(Shape):
    """The surviving voices were weighed."""

    kind: Literal["quorum_checked"] = "quorum_checked"
    round_number: int
    verdict: QuorumVerdict


class RoundClosed(Shape):
    """Everybody who would speak in this round has spoken."""

    kind: Literal["round_closed"] = "round_closed"
    round_number: int
    f_score_mean: float
    f_score_stddev: float
    duration_seconds: float


class CircleClosed(Shape):
    """The circle is over; `result` is partial when it was aborted or cancelled."""

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
