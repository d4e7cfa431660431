"""What a run keeps of one judgement: a row for each arm, record and repeat. Statistics and report read this.

The shape is frozen: columns may be added at the end, none is renamed. `records.parquet` has these columns in
this order, the scores under the names they have everywhere (`falsehood`, not `f`); `voices` and `rivals` are
lists of structures there, and everything else is flat.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from firecircle.circle.rules import BY_NAME
from firecircle.names import Label
from firecircle.shapes import Shape, Text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database
else:
    Database = Any

Status = Literal["judged", "failed"]


class VoiceRound(Shape):
    """What one voice said in one round."""

    model: Text
    round_number: int
    truth: float
    indeterminacy: float
    falsehood: float
    is_chair: bool = False
    guessed: bool = False
    """Read from a keyword, not from stated numbers."""
    active: bool = True
    """False for the words of a voice that was lost later: they stay, the vote does not."""
    asked_chars: int = 0
    """The length of the question that followed the evidence, for arms that must ask as much."""


class Rival(Shape):
    """What another aggregation rule says of the same transcript."""

    rule: Text
    value: float
    alarm: bool


class Outcome(Shape):
    """What an arm made of one prompt. A failed one has no F, but all that was heard and paid."""

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
    """Of the grounded patterns, the strongest first."""
    largest_agreement: int = 0
    """The most voices that observed the same grounded pattern."""
    quoted_layers: tuple[Text, ...] = ()
    """The layers in which grounded quotes stand."""
    chair_influence: float | None = None
    """None when nobody held the chair."""
    flips_toward: int | None = None
    """Moves of F toward the peers' mean, over all voices and rounds; None in an arm without peers."""
    flips_away: int | None = None
    flips_unchanged: int | None = None
    groupthink_losses: int = 0
    rescues: int = 0
    voices_lost: int = 0
    lost: tuple[Text, ...] = ()
    """`model_round_n: kind` for every voice that was lost."""
    quorum_valid: bool | None = None
    coverage: float | None = None
    """The quorum's coverage of roles by the voices that were left."""
    escalated: bool | None = None
    """In a cascade, whether the second circle was asked; None elsewhere."""
    calls: int = 0
    attempts: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    calls_without_tokens: int = 0
    cost_usd: float | None = None
    """None when some call's price is unknown."""
    latency_seconds: float = 0.0
    """From the first question to the verdict; after a resumption, as long as the calls took when made."""
    circle_id: Text | None = None
    voices: tuple[VoiceRound, ...] = ()
    """Every voice in every round, by round and by the order the voices are listed."""
    rivals: tuple[Rival, ...] = ()
    seating: Text | None = None
    """Which set of voices judged and how they came to sit, such as `three embedded readers (default)`."""
    roles: tuple[Text, ...] = ()
    """Who did what in a protocol that gives voices parts, such as `judge: model`."""
    calibrated: float | None = None
    """The probability of manipulation, where a calibration of these voices is known."""
    alarm_decided_by: Text | None = None
    """The rule of a circle that decided about the alarm."""
    verdict: Text | None = None
    """One of the five words."""


class RunRecord(Outcome):
    """One row: which judgement of which run, and what came of it."""

    run_id: Text
    arm: Text
    kind: Text
    """The arm's kind, such as `fire_circle` or `reflect`."""
    repeat: int
    seed: int
    """The plan's seed that this repeat belongs to."""
    dataset: Text
    record_id: Text
    source: Text
    family: Text | None
    label: Label | None
    turn_count: int | None
    """The number of the conversation turn under judgement, None when unknown."""
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
"""What the table calls fields that a journal and the code write short."""
SCORES = {{"max_all": "f", "round1_max": "round1_f"}.get(name, name): rule for name, rule in BY_NAME.items()}
"""The rules by the field that has their value; where no field has it, `rivals` does."""
IN_CODE = {column: field for field, column in IN_TABLE.items()}
COLUMNS = tuple(IN_TABLE.get(name, name) for name in FIELDS)
"""The columns of `records.parquet`, in their order."""


def alarm_value(database: Database, table: str) -> str:
    """What the alarm of a row goes by, as SQL: the calibrated probability where that decided, else F.

    Runs of before kept no calibrated probability.
    """
    described = database.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    if "alarm_decided_by" not in {row[0] for row in described}:
        return "f"
    return "CASE WHEN alarm_decided_by = 'calibrated' THEN calibrated ELSE f END"


def records_table(database: Database, path: Path) -> str:
    """The table in that file as SQL, its columns under the names of the fields and `file_row_number`.

    Runs of before had them so in the file.
    """
    place = str(path).replace("'", "''")
    names = {row[0] for row in database.execute(f"SELECT name FROM parquet_schema('{place}')").fetchall()}
    renamed = ", ".join(f"{column} AS {field}" for field, column in IN_TABLE.items() if column in names)
    if "f" in names or not renamed:  # voices have a falsehood of their own
        return f"read_parquet('{place}', file_row_number = true)"
    return f"(SELECT * RENAME ({renamed}) FROM read_parquet('{place}', file_row_number = true))"
