"""A run's records as its journal holds them."""

from __future__ import annotations

import zlib

from firecircle.engine.journal import Journal, RecordRow, undamaged
from firecircle.lab.records import RunRecord


class RunJournal(Journal):
    """The journal of a run of the lab."""

    start_over = "start over with `firecircle lab run PLAN --new`"


def row_of(record: RunRecord, place: int) -> RecordRow:
    """The record, packed."""
    return RecordRow(
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


def unpack_record(packed: bytes) -> RunRecord:
    """A record as the journal packed it."""
    with undamaged("the journal", RunJournal.start_over):
        return RunRecord.model_validate_json(zlib.decompress(packed))
