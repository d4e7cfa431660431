"""What the journal keeps: calls as they ended, and judged records, packed."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import NamedTuple

from firecircle.circle.voice import Reply
from firecircle.errors import FailureKind, VoiceError
from firecircle.lab.records import RunRecord


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call as it ended: what was said, or how it failed, and how long it took."""

    reply: Reply | None
    seconds: float
    failed: FailureKind | None = None
    message: str = ""
    attempts: int = 1

    def replayed(self) -> Reply:
        """The same answer, or the same failure."""
        if self.reply is None:
            raise VoiceError(self.message, kind=self.failed or "raised", attempts=self.attempts)
        return self.reply


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A judged record on its way into the journal: what is summed up on the way, and the whole of it."""

    repeat: int
    place: int
    arm: str
    status: str
    label: str | None
    f: float | None
    alarm: bool | None
    calls: int
    tokens: int
    cost_usd: float | None
    voices_lost: int
    dataset: str
    record_id: str
    record: bytes

    @classmethod
    def of(cls, record: RunRecord, place: int) -> RecordRow:
        """The record, packed."""
        return cls(
            repeat=record.repeat,
            place=place,
            arm=record.arm,
            status=record.status,
            label=record.label,
            f=record.f,
            alarm=record.alarm,
            calls=record.calls,
            tokens=record.tokens_in + record.tokens_out,
            cost_usd=record.cost_usd,
            voices_lost=record.voices_lost,
            dataset=record.dataset,
            record_id=record.record_id,
            record=zlib.compress(record.model_dump_json().encode(), 1),
        )

    def row(self) -> tuple[object, ...]:
        """In the order of the table's columns."""
        return tuple(getattr(self, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Whose call it is."""

    arm: str
    repeat: int
    dataset: str
    record_id: str
    voice: str
    round_number: int


class JudgementRef(NamedTuple):
    """Which judgement it is, and its F; None when it failed."""

    repeat: int
    place: int
    arm: str
    dataset: str
    record_id: str
    f: float | None


def unpack_record(packed: bytes) -> RunRecord:
    """A record as the journal packed it."""
    return RunRecord.model_validate_json(zlib.decompress(packed))


def call_as_text(call: FinishedCall) -> str:
    """A call as the journal writes it down."""
    if call.reply:
        return json.dumps({"seconds": call.seconds, "reply": call.reply.dump()})
    return json.dumps({"seconds": call.seconds, "message": call.message, "attempts": call.attempts})


def call_from_text(failed: FailureKind | None, text: str) -> FinishedCall:
    """A call that the journal holds; earlier versions wrote the parts of the reply beside the seconds."""
    call = json.loads(text)
    if failed is not None:
        return FinishedCall(None, call["seconds"], failed, call["message"], call["attempts"])
    return FinishedCall(Reply.load(call.get("reply", call)), call["seconds"])
