"""The judgements of a run: from its records once it is finished, else from its journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field
from pydantic_core import to_json

from firecircle.verdict import VERDICT_WORDS, VerdictWord, mistake_of
from firecircle.web.api.shapes import Name
from firecircle.web.shown.prompt_table import Entry, Row, TableQuery

if TYPE_CHECKING:
    from firecircle.lab.compare import Flip
    from firecircle.lab.records import RunRecord
    from firecircle.lab.runs.folder import RunFolder

MOST, MOST_UNFINISHED = 200_000, 5_000
"""Judgements that a page looks at, of a finished run and of one whose journal is read each time."""
_WORD_OF_ALARM = "CASE WHEN alarm IS NULL THEN 'no_verdict' WHEN alarm THEN 'alarm' ELSE 'no_alarm' END"
"""The verdict in runs of before, which noted only whether there was an alarm."""


class JudgementQuery(TableQuery):
    """Which judgements of a run are listed. Ranges include their beginning and leave out their end."""

    arm: Name | None = None
    only: Literal["missed", "false_alarms"] | None = None
    label: Literal["attack", "benign", "none"] | None = None
    f_from: float | None = Field(default=None, ge=0, le=1)
    f_below: float | None = Field(default=None, ge=0, le=1)
    round1_from: float | None = Field(default=None, ge=0, le=1)
    round1_below: float | None = Field(default=None, ge=0, le=1)
    score_from: float | None = Field(default=None, ge=0, le=1)
    """Of what raises the alarm, where that is not F but the calibrated probability."""

    def includes(self, judgement: Judgement) -> bool:
        """Whether a judgement is among them."""
        mistake = {"missed": "missed", "false_alarms": "false alarm"}.get(self.only or "")
        return (
            self.arm in (None, judgement.arm)
            and (mistake is None or mistake == mistake_of(judgement.verdict, judgement.label))
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


@dataclass(frozen=True, slots=True)
class Judgement:
    """One prompt as an arm judged it."""

    arm: str
    dataset: str
    record_id: str
    repeat: int
    label: str | None
    status: str
    error: str | None
    f: float | None
    round1_f: float | None
    score: float | None
    """What the alarm goes by: F, or the calibrated probability where that decides."""
    alarm: bool | None
    verdict: VerdictWord
    pattern_types: tuple[str, ...]


_FIELDS = tuple(Judgement.__dataclass_fields__)


def all_judgements(run: RunFolder) -> Sequence[Judgement]:
    """The judgements of a run in its order, as many as a page looks at."""
    if run.has_table:
        return _from_records(run.records, run.records.stat().st_mtime_ns)
    return [_judgement(record) for record in islice(every_record(run), MOST_UNFINISHED)]


def rows_of(
    judgements: Sequence[Judgement], query: JudgementQuery, arms: Sequence[str], threshold: float
) -> list[Row]:
    """A row for each prompt of which some judgement is included; those without a verdict come first."""
    prompts: dict[tuple[str, str, int], dict[str, int]] = {}
    for number, one in enumerate(judgements):
        prompts.setdefault((one.dataset, one.record_id, one.repeat), {})[one.arm] = number
    repeated = any(repeat for _, _, repeat in prompts)
    rows = []
    for (_, name, repeat), numbers in prompts.items():
        found = {arm: judgements[number] for arm, number in numbers.items()}
        if not any(map(query.includes, found.values())):
            continue
        rows.append(
            Row(
                f"{name} ({repeat + 1})" if repeated else name,
                next(iter(found.values())).label,
                "",
                tuple(dict.fromkeys(kind for one in found.values() for kind in one.pattern_types)),
                tuple(_entry(found.get(arm), numbers.get(arm, 0), threshold) for arm in arms),
            )
        )
    return sorted(rows, key=lambda row: not row.counts_as("failed"))


def paired_rows(
    sides: Sequence[Sequence[Judgement]], arm: str, thresholds: Sequence[float], flips: Mapping[str, Flip]
) -> list[Row]:
    """A row for each prompt that an arm judged in both of two runs, those with another verdict first."""
    found: list[dict[str, int]] = [
        {
            one.record_id.removeprefix(f"{one.dataset}:"): number
            for number, one in enumerate(judgements)
            if one.arm == arm and not one.repeat
        }
        for judgements in sides
    ]
    rows = []
    for name in found[0]:
        if name not in found[1]:
            continue
        places = found[0][name], found[1][name]
        pair = [judgements[place] for judgements, place in zip(sides, places, strict=True)]
        flip = flips.get(name)
        changed = f" (changed: {', '.join(flip.changed)})" if flip and flip.changed else ""
        entries = tuple(map(_entry, pair, places, thresholds))
        words = f"{flip.words or ''}{changed}" if flip else ""
        rows.append(Row(name, pair[0].label, words, pair[1].pattern_types, entries))
    return sorted(rows, key=lambda row: not row.counts_as("different"))


def _entry(one: Judgement | None, number: int, threshold: float) -> Entry | None:
    if one is None:
        return None
    return Entry(one.verdict, "converged", one.f, threshold, one.alarm, one.error or "", number=number)


def every_record(run: RunFolder, record_id: str | None = None) -> Iterator[RunRecord]:
    """All that is in the journal, or all of one prompt, one after another."""
    from firecircle.lab.records import RunJournal, RunRecord

    written = b"" if record_id is None else to_json(record_id)  # reading a line costs more than looking at it
    with RunJournal(run.journal) as journal:
        for line in journal.all_records(run.about.arms):
            if written in line:
                yield RunRecord.model_validate_json(line)


def _judgement(record: RunRecord) -> Judgement:
    score = record.calibrated if record.alarm_decided_by == "calibrated" else record.f
    plain = {name: getattr(record, name) for name in _FIELDS if name not in ("score", "verdict")}
    return Judgement(**plain, score=score, verdict=word_of(record))


def word_of(record: RunRecord) -> VerdictWord:
    """The verdict on a record; runs of before noted only whether there was an alarm."""
    known = next((word for word in VERDICT_WORDS if word == record.verdict), None)
    return known or ("no_verdict" if record.alarm is None else "alarm" if record.alarm else "no_alarm")


@lru_cache(maxsize=4)
def _from_records(records: Path, _: int) -> Sequence[Judgement]:
    import duckdb

    from firecircle.lab.records import alarm_value, records_table

    with duckdb.connect(":memory:") as database:
        table = records_table(database, records)
        kept = {row[0] for row in database.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()}
        if "verdict" not in kept:
            table = f"(SELECT *, {_WORD_OF_ALARM} AS verdict FROM {table})"
        score = alarm_value(database, table)
        columns = ", ".join(score if name == "score" else name for name in _FIELDS)
        statement = f"SELECT {columns} FROM {table} ORDER BY file_row_number LIMIT {MOST:d}"
        rows = database.execute(statement).fetchall()
    return [
        Judgement(**{**dict(zip(_FIELDS, row, strict=True)), "pattern_types": tuple(row[-1] or ())})
        for row in rows
    ]


def _within(value: float | None, least: float | None, below: float | None) -> bool:
    if least is None and below is None:
        return True
    return value is not None and (least is None or value >= least) and (below is None or value < below)
