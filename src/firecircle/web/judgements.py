"""The judgements of a run, a page at a time: from its records once it is finished, else from its journal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Literal

from pydantic import Field
from pydantic_core import to_json

from firecircle.shapes import Shape, Text
from firecircle.verdict import COUNTED, VERDICT_WORDS, VerdictWord, mistake_of
from firecircle.web.api.shapes import Name

if TYPE_CHECKING:
    from firecircle.lab.records import RunRecord
    from firecircle.lab.runs.folder import RunFolder

_COUNTED = ", ".join(f"'{word}'" for word in COUNTED)
ONLY = {
    "missed": f"label = 'attack' AND alarm = false AND verdict IN ({_COUNTED})",
    "false_alarms": "label = 'benign' AND alarm = true",
    "failed": "status = 'failed'",
}


_WORD_OF_ALARM = "CASE WHEN alarm IS NULL THEN 'no_verdict' WHEN alarm THEN 'alarm' ELSE 'no_alarm' END"
"""The verdict in runs of before, which noted only whether there was an alarm."""


class JudgementQuery(Shape):
    """Which judgements of a run are listed. Ranges include their beginning and leave out their end."""

    arm: Name | None = None
    only: Literal["missed", "false_alarms", "failed"] | None = None
    verdict: VerdictWord | None = None
    label: Literal["attack", "benign", "none"] | None = None
    f_from: float | None = Field(default=None, ge=0, le=1)
    f_below: float | None = Field(default=None, ge=0, le=1)
    round1_from: float | None = Field(default=None, ge=0, le=1)
    round1_below: float | None = Field(default=None, ge=0, le=1)
    score_from: float | None = Field(default=None, ge=0, le=1)
    """Of what raises the alarm, where that is not F but the calibrated probability."""
    start: int = Field(default=0, ge=0, le=10**9)

    def includes(self, judgement: Judgement) -> bool:
        """Whether a judgement is among them."""
        mistake = {"missed": "missed", "false_alarms": "false alarm"}.get(self.only or "")
        return (
            self.arm in (None, judgement.arm)
            and self.verdict in (None, judgement.verdict)
            and (mistake is None or mistake == mistake_of(judgement.verdict, judgement.label))
            and (self.only != "failed" or judgement.status == "failed")
            and self.label in (None, judgement.label or "none")
            and _within(judgement.f, self.f_from, self.f_below)
            and _within(judgement.round1_f, self.round1_from, self.round1_below)
            and _within(judgement.score, self.score_from, None)
        )

    @property
    def ranges(self) -> str:
        """The ranges in words, empty without any."""
        ranges = (
            ("round 1 F", self.round1_from, self.round1_below),
            ("F", self.f_from, self.f_below),
            ("probability", self.score_from, None),
        )
        return " and ".join(
            words
            + (f" from {least:.4g}" if least is not None else "")
            + (f" below {below:.4g}" if below is not None else "")
            for words, least, below in ranges
            if least is not None or below is not None
        )

    def conditions(self, score: str) -> tuple[str, list[object]]:
        """The same as SQL, and its values; `score` is what raises the alarm, as SQL."""
        conditions: list[tuple[str, object]] = []
        if self.arm is not None:
            conditions.append(("arm = ?", self.arm))
        if self.verdict is not None:
            conditions.append(("verdict = ?", self.verdict))
        if self.label is not None:
            conditions.append(("coalesce(label, 'none') = ?", self.label))
        for name, least, below in (
            ("f", self.f_from, self.f_below),
            ("round1_f", self.round1_from, self.round1_below),
            (score, self.score_from, None),
        ):
            if least is not None:
                conditions.append((f"{name} >= ?", least))
            if below is not None:
                conditions.append((f"{name} < ?", below))
        words = [words for words, _ in conditions] + ([ONLY[self.only]] if self.only else [])
        return " AND ".join(words) or "true", [value for _, value in conditions]


class Judgement(Shape):
    """One line of the list."""

    arm: Text
    dataset: Text
    record_id: Text
    repeat: int
    label: Text | None
    status: Text
    error: Text | None
    f: float | None
    round1_f: float | None
    score: float | None
    """What the alarm goes by: F, or the calibrated probability where that decides."""
    alarm: bool | None
    verdict: VerdictWord
    rounds: int
    pattern_types: tuple[Text, ...]


def judgements(run: RunFolder, query: JudgementQuery, most: int) -> list[Judgement]:
    """So many judgements that a query asks for, in the order of the run; at its end, the failed first."""
    if run.has_table:
        return _from_records(run, query, most)
    every = (Judgement(**_named(record)) for record in every_record(run))
    return list(islice(filter(query.includes, every), query.start, query.start + most))


def every_record(run: RunFolder, record_id: str | None = None) -> Iterator[RunRecord]:
    """All that is in the journal, or all of one prompt, one after another."""
    from firecircle.lab.records import RunRecord
    from firecircle.lab.runs.journal import RunJournal

    written = b"" if record_id is None else to_json(record_id)  # reading a line costs more than looking at it
    with RunJournal(run.journal) as journal:
        for line in journal.all_records(run.about.arms):
            if written in line:
                yield RunRecord.model_validate_json(line)


def _named(record: RunRecord) -> dict[str, object]:
    score = record.calibrated if record.alarm_decided_by == "calibrated" else record.f
    return {name: getattr(record, name) for name in Judgement.model_fields if name != "score"} | {
        "score": score,
        "verdict": word_of(record),
    }


def word_of(record: RunRecord) -> VerdictWord:
    """The verdict on a record; runs of before noted only whether there was an alarm."""
    known = next((word for word in VERDICT_WORDS if word == record.verdict), None)
    return known or ("no_verdict" if record.alarm is None else "alarm" if record.alarm else "no_alarm")


def _from_records(run: RunFolder, query: JudgementQuery, most: int) -> list[Judgement]:
    import duckdb

    from firecircle.lab.records import alarm_value, records_table

    names = tuple(Judgement.model_fields)
    with duckdb.connect(":memory:") as database:
        table = records_table(database, run.records)
        kept = {row[0] for row in database.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()}
        if "verdict" not in kept:
            table = f"(SELECT *, {_WORD_OF_ALARM} AS verdict FROM {table})"
        score = alarm_value(database, table)
        where, values = query.conditions(score)
        columns = ", ".join(score if name == "score" else name for name in names)
        statement = (
            f"SELECT {columns} FROM {table} WHERE {where}"
            f" ORDER BY status = 'failed' DESC, file_row_number LIMIT {most:d} OFFSET {query.start:d}"
        )
        rows = database.execute(statement, values).fetchall()
    return [Judgement(**dict(zip(names, row, strict=True))) for row in rows]


def _within(value: float | None, least: float | None, below: float | None) -> bool:
    if least is None and below is None:
        return True
    return value is not None and (least is None or value >= least) and (below is None or value < below)
