"""The rows of a run, its journal and its files: locks, and tables written whole."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from firecircle.circle.rules import BY_NAME
from firecircle.engine.journal import Journal, RecordRow, report_damage
from firecircle.names import Label
from firecircle.shapes import Shape, Text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database
else:
    Database = Any

Status = Literal["judged", "failed"]


class VoiceRound(Shape):
    """One voice's evaluation in one round."""

    model: Text
    round_number: int
    truth: float
    indeterminacy: float
    falsehood: float
    is_chair: bool = False
    guessed: bool = False
    """Read from a keyword, not from stated numbers."""
    active: bool = True
    """False for evaluations of a voice that was lost later: they are recorded, its vote does not count."""
    asked_chars: int = 0
    """The length of the question after the evidence, for arms that must match it."""


class Rival(Shape):
    """The verdict of another aggregation rule on the same transcript."""

    rule: Text
    value: float
    alarm: bool


class Outcome(Shape):
    """An arm's result for one prompt. A failed one has no F, but everything said and paid."""

    status: Status
    error: Text | None = None
    """Why there is no verdict, in one line."""
    f: float | None = None
    """The arm's score: falsehood of its consensus."""
    t: float | None = None
    i: float | None = None
    round1_f: float | None = None
    """The same rule on the first round alone: the highest F of a circle's baseline, a panel's own score."""
    alarm: bool | None = None
    decided_by: Text | None = None
    decided_in_round: int | None = None
    decided_by_guess: bool = False
    final_max: float | None = None
    final_mean: float | None = None
    final_median: float | None = None
    majority: float | None = None
    """The share of active voices whose last F reaches the threshold."""
    rounds: int = 0
    stopped: Text | None = None
    patterns: int = 0
    """Grounded and ungrounded together."""
    grounded_patterns: int = 0
    pattern_types: tuple[Text, ...] = ()
    """Of the grounded patterns, strongest first."""
    largest_agreement: int = 0
    """The most voices that observed the same grounded pattern."""
    quoted_layers: tuple[Text, ...] = ()
    """The layers with grounded quotes."""
    chair_influence: float | None = None
    """None without a chair."""
    flips_toward: int | None = None
    """Moves of F toward the peers' mean, over all voices and rounds; None in an arm without peers."""
    flips_away: int | None = None
    flips_unchanged: int | None = None
    groupthink_losses: int = 0
    rescues: int = 0
    voices_lost: int = 0
    lost: tuple[Text, ...] = ()
    """`model_round_n: kind` for every lost voice."""
    quorum_valid: bool | None = None
    coverage: float | None = None
    """The quorum's coverage of roles by the remaining voices."""
    escalated: bool | None = None
    """In a cascade, whether the second circle was asked; None elsewhere."""
    calls: int = 0
    attempts: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    calls_without_tokens: int = 0
    cost_usd: float | None = None
    """None if some call's price is unknown."""
    latency_seconds: float = 0.0
    """From the first question to the verdict; after a resumption, the original duration of the calls."""
    circle_id: Text | None = None
    voices: tuple[VoiceRound, ...] = ()
    """Every voice in every round, by round and in list order."""
    rivals: tuple[Rival, ...] = ()
    seating: Text | None = None
    """The set of voices and how it was chosen, such as `three embedded readers (default)`."""
    roles: tuple[Text, ...] = ()
    """Roles in a protocol that assigns them, such as `judge: model`."""
    calibrated: float | None = None
    """The probability of manipulation, if a calibration of these voices is known."""
    alarm_decided_by: Text | None = None
    """The rule that decided on a circle's alarm."""
    verdict: Text | None = None
    """One of the five words."""


class RunRecord(Outcome):
    """One row: a judgement of a run, and its outcome."""

    run_id: Text
    arm: Text
    kind: Text
    """The arm's kind, such as `fire_circle` or `reflect`."""
    repeat: int
    seed: int
    """The plan's seed of this repeat."""
    dataset: Text
    record_id: Text
    source: Text
    family: Text | None
    label: Label | None
    turn_count: int | None
    """The number of the conversation turn to judge, None if unknown."""
    layers: tuple[Text, ...]
    """The layers that have text."""


IDENTITY = tuple(name for name in RunRecord.model_fields if name not in Outcome.model_fields)
FIELDS = (*IDENTITY, *Outcome.model_fields)
IN_TABLE = {
    "f": "falsehood",
    "t": "truth",
    "i": "indeterminacy",
    "round1_f": "round1_falsehood",
}
"""The table's names of fields that are short in journal and code."""
SCORES = {{"max_all": "f", "round1_max": "round1_f"}.get(name, name): rule for name, rule in BY_NAME.items()}
"""Rules by the field that has their value; other values are in `rivals`."""
IN_CODE = {column: field for field, column in IN_TABLE.items()}
COLUMNS = tuple(IN_TABLE.get(name, name) for name in FIELDS)
"""The columns of `records.parquet`, in order."""


def alarm_value(database: Database, table: str) -> str:
    """The value that decides a row's alarm, as SQL: the calibrated probability where it decided, otherwise F.

    Older runs have no calibrated probability.
    """
    described = database.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    if "alarm_decided_by" not in {row[0] for row in described}:
        return "f"
    return "CASE WHEN alarm_decided_by = 'calibrated' THEN calibrated ELSE f END"


def records_table(database: Database, path: Path) -> str:
    """The table in that file as SQL, its columns under the names of the fields and `file_row_number`.

    Older files have the fields' names already.
    """
    place = str(path).replace("'", "''")
    names = {row[0] for row in database.execute(f"SELECT name FROM parquet_schema('{place}')").fetchall()}
    renamed = ", ".join(f"{column} AS {field}" for field, column in IN_TABLE.items() if column in names)
    if "f" in names or not renamed:  # the lists of voices have their own falsehood
        return f"read_parquet('{place}', file_row_number = true)"
    return f"(SELECT * RENAME ({renamed}) FROM read_parquet('{place}', file_row_number = true))"


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
    with report_damage("the journal", RunJournal.start_over):
        return RunRecord.model_validate_json(zlib.decompress(packed))


LARGEST_NOTE = 50_000_000
"""Bytes of a file that describes a run; its prompts and answers are elsewhere."""
