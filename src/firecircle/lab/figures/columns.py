"""The records of one arm as columns, read from `records.parquet` without loading the rest.

A prompt judged several times (repeats, seeds) counts once, by the mean of its scores: repeats are not new
evidence, and must not narrow the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firecircle.circle.measures import Figures, TwoReadings, readings_of
from firecircle.errors import ConfigError
from firecircle.lab.records import SCORES, alarm_value, records_table
from firecircle.lab.statistics.estimate import FloatArray, numbers
from firecircle.names import Label

PROMPT = "dataset || '/' || record_id"
"""Identifies a prompt: ids are unique only within a dataset."""


@dataclass(frozen=True, slots=True)
class ArmColumns:
    """One entry for each prompt of the arm, ordered by name."""

    arm: str
    kind: str
    records: tuple[str, ...]
    """`dataset/id` of each prompt."""
    labels: tuple[Label | None, ...]
    families: tuple[str | None, ...]
    sources: tuple[str, ...]
    layers: tuple[str, ...]
    """The layers that have text, as in `system + user`."""
    turns: tuple[str, ...]
    scores: dict[str, FloatArray]
    """By the name of the rule; NaN without a verdict."""
    verdict: FloatArray
    """The value that decides the alarm: F, or the calibrated probability where it decided."""
    influence: FloatArray
    grounded: tuple[int, ...]
    ungrounded: tuple[int, ...]
    cost: FloatArray

    @property
    def rule(self) -> str:
        """The score that decides the alarm; `calibrated` also if F replaced it in some circles."""
        same = np.array_equal(self.verdict, self.scores["f"], equal_nan=True)
        return "f" if same else "calibrated"


@dataclass(frozen=True, slots=True)
class Spoken:
    """F of every voice on every record, round by round; NaN if a voice was not heard."""

    voices: tuple[str, ...]
    by_round: tuple[FloatArray, ...]
    """For each round a row per voice and a column per record."""

    @property
    def first(self) -> FloatArray:
        """Each voice's F in round 1."""
        return self.by_round[0]

    @property
    def last(self) -> FloatArray:
        """Each voice's last F."""
        words = self.by_round[0].copy()
        for later in self.by_round[1:]:
            words = np.where(np.isfinite(later), later, words)
        return words


@dataclass(frozen=True, slots=True)
class Totals:
    """The total use of an arm, over all repeats."""

    judged: int
    failed: int
    voices_lost: int
    calls: int
    attempts: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    cost_usd: float | None
    seconds: float
    """The mean time from question to verdict."""
    flips_toward: int
    flips_away: int
    flips_unchanged: int


class RecordFile:
    """`records.parquet` of a run, queried by arm."""

    def __init__(self, path: Path) -> None:
        import duckdb

        if not path.exists():
            raise ConfigError(path.parent.name, "has no records yet", "`firecircle lab run` finishes the run")
        self._database = duckdb.connect(":memory:")
        self._table = records_table(self._database, path)
        described = self._database.execute(f"DESCRIBE SELECT * FROM {self._table}").fetchall()
        self._kept = {row[0] for row in described}
        self._alarm_value = alarm_value(self._database, self._table)

    def arms(self) -> tuple[str, ...]:
        """The arms, in the order of the plan as far as the file shows it."""
        return tuple(
            row[0] for row in self._ask("SELECT arm FROM $ GROUP BY arm ORDER BY min(file_row_number)")
        )

    def columns(self, arm: str) -> ArmColumns:
        """The figures of one arm, one entry per prompt."""
        means = ", ".join(f"avg({self._score(name)})" for name in SCORES)
        rows = self._ask(
            f"SELECT {PROMPT}, any_value(kind), any_value(label), any_value(family), any_value(source),"
            f" array_to_string(any_value(layers), ' + '), any_value(turn_count), avg(chair_influence),"
            f" CAST(round(avg(grounded_patterns)) AS INT),"
            f" CAST(round(avg(patterns - grounded_patterns)) AS INT),"
            f" avg(cost_usd), avg({self._alarm_value}), {means}"
            f" FROM $ WHERE arm = ? GROUP BY {PROMPT} ORDER BY {PROMPT}",
            [arm],
        )
        columns = list(zip(*rows, strict=True)) or [()] * (12 + len(SCORES))
        return ArmColumns(
            arm=arm,
            kind=columns[1][0] if columns[1] else "",
            records=columns[0],
            labels=columns[2],
            families=columns[3],
            sources=columns[4],
            layers=tuple(name or "none" for name in columns[5]),
            turns=tuple("unknown" if n is None else _turns(n) for n in columns[6]),
            influence=numbers(columns[7]),
            grounded=columns[8],
            ungrounded=columns[9],
            cost=numbers(columns[10]),
            verdict=numbers(columns[11]),
            scores={name: numbers(columns[12 + place]) for place, name in enumerate(SCORES)},
        )

    def spoken(self, arm: str, records: Sequence[str]) -> Spoken:
        """F by voice and round, of the voices that were active to the end."""
        rows = self._ask(
            f"SELECT prompt, v.model, v.round_number, avg(v.falsehood) FROM"
            f" (SELECT {PROMPT} AS prompt, unnest(voices) AS v FROM $ WHERE arm = ?) WHERE v.active"
            " GROUP BY prompt, v.model, v.round_number",
            [arm],
        )
        voices = tuple(sorted({row[1] for row in rows}))
        rounds = max((row[2] for row in rows), default=0)
        place_of_voice = {voice: place for place, voice in enumerate(voices)}
        place_of_record = {record: place for place, record in enumerate(records)}
        falsehoods = np.full((rounds, len(voices), len(records)), np.nan)
        for record, voice, number, falsehood in rows:
            falsehoods[number - 1, place_of_voice[voice], place_of_record[record]] = falsehood
        return Spoken(voices, tuple(falsehoods))

    def readings(self, arm: str) -> tuple[tuple[Label | None, TwoReadings], ...]:
        """The readings of those present and of the empty chair, a prompt each, with its label."""
        rows = self._ask("SELECT label, voices FROM $ WHERE arm = ? AND repeat = 0", [arm])
        found = ((label, readings_of(_rounds(spoken))) for label, spoken in rows)
        return tuple((label, readings) for label, readings in found if readings is not None)

    def voices(self, arm: str) -> frozenset[str]:
        """All voices that were heard."""
        rows = self._ask(
            "SELECT DISTINCT v.model FROM (SELECT unnest(voices) AS v FROM $ WHERE arm = ?)", [arm]
        )
        return frozenset(row[0] for row in rows)

    def totals(self, arm: str) -> Totals:
        """What the arm consumed."""
        row = self._ask(
            "SELECT count(*) FILTER (status = 'judged'), count(*) FILTER (status = 'failed'),"
            " sum(voices_lost), sum(calls), sum(attempts), sum(tokens_in), sum(tokens_cached),"
            " sum(tokens_out),"
            " CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END, avg(latency_seconds),"
            " coalesce(sum(flips_toward), 0), coalesce(sum(flips_away), 0), coalesce(sum(flips_unchanged), 0)"
            " FROM $ WHERE arm = ?",
            [arm],
        )[0]
        return Totals(*row)

    def _score(self, name: str) -> str:
        """A score as SQL: its own column, or the value of the rule in the list of rivals."""
        if name in self._kept:
            return name
        return f"list_filter(rivals, lambda one: one.rule = '{SCORES[name].name}')[1].value"

    def _ask(self, query: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
        return self._database.execute(query.replace("$", self._table), values or []).fetchall()


def _rounds(spoken: Sequence[dict[str, Any]]) -> list[tuple[int, str | None, dict[str, Figures]]]:
    """The figures of each round, and the voice in its chair."""
    stated: dict[int, dict[str, Figures]] = {}
    chairs: dict[int, str] = {}
    for voice in spoken:
        number = voice["round_number"]
        names = ("truth", "indeterminacy", "falsehood")
        stated.setdefault(number, {})[voice["model"]] = Figures(**{name: voice[name] for name in names})
        if voice["is_chair"]:
            chairs[number] = voice["model"]
    return [(number, chairs.get(number), stated[number]) for number in sorted(stated)]


def _turns(number: int) -> str:
    return str(number) if number <= 3 else "4 to 6" if number <= 6 else "7 or more"
