"""What was fitted or measured on saved circles: role and verdict calibrations, runs, errors of voices."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from firecircle.circle.calibrated import VerdictCalibration
from firecircle.circle.quorum import MeasuredErrors, measured_errors
from firecircle.errors import ConfigError, StoreError
from firecircle.names import Label, is_attack, is_benign
from firecircle.shapes import Shape, Text
from firecircle.store.database import Database, insert_unless_there, storable
from firecircle.store.tables import calibrated, circles, evaluations, runs, texts
from firecircle.store.tables import verdict_calibrations as table


class CalibrationStore:
    """The circles that calibrations of one database have counted."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def counted_for(self, circle_id: str) -> frozenset[str]:
        """The voices for which this circle has been counted."""
        query = sa.select(calibrated.c.voice).where(calibrated.c.circle_id == storable(circle_id))
        with self.database.reading() as connection:
            return frozenset(connection.execute(query).scalars())

    def record(self, counted: Iterable[tuple[str, str]]) -> None:
        """Save that these circles were counted for these voices: pairs of circle id and voice."""
        now = time.time()
        rows = [
            {"circle_id": storable(circle), "voice": storable(voice), "at": now}
            for circle, voice in sorted(counted)
        ]
        if rows:
            with self.database.writing() as connection:
                connection.execute(insert_unless_there(connection.dialect.name, calibrated), rows)


class KnownRun(Shape):
    """One run in the store."""

    folder: Text
    run_id: Text
    plan: Text
    digest: Text
    arms: tuple[Text, ...]
    judgements: int
    started_at: float
    finished_at: float | None = None


class RunStore:
    """The runs in one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def begin(self, run: KnownRun) -> None:
        """Save a run; a resumed one is known already."""
        row = {**run.model_dump(), "arms": "\n".join(run.arms)}
        values = {name: storable(value) if isinstance(value, str) else value for name, value in row.items()}
        with self.database.writing() as connection:
            connection.execute(insert_unless_there(connection.dialect.name, runs), [values])

    def finish(self, folder: str) -> None:
        """Save that a run is finished."""
        with self.database.writing() as connection:
            changed = sa.update(runs).where(runs.c.folder == storable(folder))
            connection.execute(changed.values(finished_at=time.time()))

    def each(self) -> tuple[KnownRun, ...]:
        """Every run, newest first."""
        query = sa.select(runs).order_by(runs.c.started_at.desc())
        with self.database.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return tuple(KnownRun(**{**row, "arms": tuple(row["arms"].split("\n"))}) for row in rows)


class VerdictStore:
    """The calibrations of one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def keep(self, calibration: VerdictCalibration, circles: Iterable[str] = ()) -> None:
        """Save a calibration, with the ids of the circles or records it was fitted on."""
        row = {
            "id": storable(calibration.fit.id),
            "voices": _key(calibration.voices),
            "rounds": calibration.rounds,
            "fitted_at": calibration.fit.fitted_at,
            "body": calibration.model_dump_json(),
            "circles": storable("\n".join(circles)),
        }
        with self.database.writing() as connection:
            connection.execute(sa.delete(table).where(table.c.id == row["id"]))
            connection.execute(sa.insert(table), [row])

    def find(self, models: Sequence[str], max_rounds: int) -> VerdictCalibration | None:
        """The newest calibration for circles of these voices and this number of rounds."""
        query = (
            sa.select(table.c.id, table.c.body)
            .where(table.c.voices == _key(models), table.c.rounds <= max_rounds)
            .order_by(table.c.fitted_at.desc())
            .limit(1)
        )
        with self.database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else self._read(row.id, row.body)

    def each(self) -> tuple[VerdictCalibration, ...]:
        """All calibrations, newest first."""
        with self.database.reading() as connection:
            rows = connection.execute(sa.select(table).order_by(table.c.fitted_at.desc())).all()
        return tuple(self._read(row.id, row.body) for row in rows)

    def fitted_on(self, name: str) -> tuple[str, ...]:
        """The ids of the circles or records that a calibration was fitted on."""
        with self.database.reading() as connection:
            text = connection.execute(sa.select(table.c.circles).where(table.c.id == name)).scalar()
        return tuple(text.split("\n")) if text else ()

    def remove(self, name: str) -> str:
        """Delete the calibration with this id or unique prefix; returns its id."""
        with self.database.writing() as connection:
            every = connection.execute(sa.select(table.c.id)).scalars().all()
            found = [known for known in every if known == name] or [
                known for known in every if name and known.startswith(name)
            ]
            if len(found) != 1:
                why = "several calibrations begin so" if found else "no such calibration"
                raise ConfigError("--remove", f"{name}: {why}", "`firecircle calibrate --list` shows them")
            connection.execute(sa.delete(table).where(table.c.id == found[0]))
            return str(found[0])

    def _read(self, name: str, body: str) -> VerdictCalibration:
        try:
            return VerdictCalibration.model_validate_json(body)
        except ValidationError:
            raise StoreError(
                f"store: the calibration {name} in {self.database.name} cannot be read;"
                f" `firecircle calibrate --remove {name}` takes it out"
            ) from None


def _key(models: Iterable[str]) -> str:
    return storable("\n".join(sorted(models)))


MOST_CIRCLES = 5_000
"""The newest labelled circles that are read, so that a large store costs no more than a small one."""
FRESH_SECONDS = 60.0
"""How long an answer is reused, because a batch asks before every prompt."""


@dataclass(slots=True)
class LabelledVotes:
    """Each labelled prompt once, with each voice's latest round 1 evaluation of it."""

    said: list[dict[str, float]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)


class IndependenceStore:
    """How the voices of one database err together."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._measured: tuple[float, MeasuredErrors] | None = None

    def votes(self) -> LabelledVotes:
        """Round 1 of the newest labelled circles."""
        labelled = (
            sa.select(circles.c.pk, circles.c.label, circles.c.alarm_threshold, texts.c.prompt)
            .join(texts, texts.c.circle_pk == circles.c.pk)
            .where(circles.c.label.is_not(None), circles.c.alarm_threshold.is_not(None))
            .order_by(circles.c.pk.desc())
            .limit(MOST_CIRCLES)
        )
        votes = LabelledVotes()
        places: dict[str, int] = {}
        of_circle: dict[int, int] = {}
        with self.database.reading() as connection:
            for pk, label, threshold, prompt in connection.execute(labelled):
                if not is_attack(label) and not is_benign(label):
                    continue
                if prompt not in places:
                    places[prompt] = len(votes.said)
                    votes.said.append({})
                    votes.labels.append("attack" if is_attack(label) else "benign")
                    votes.thresholds.append(threshold)
                of_circle[pk] = places[prompt]
            if of_circle:
                for pk, voice, falsehood in connection.execute(_round_one(min(of_circle), max(of_circle))):
                    if pk in of_circle:
                        votes.said[of_circle[pk]].setdefault(voice, falsehood)
        return votes

    def measured(self) -> MeasuredErrors:
        """The errors that voices share; recomputed at most once a minute."""
        now = time.monotonic()
        if self._measured is None or now - self._measured[0] > FRESH_SECONDS:
            votes = self.votes()
            self._measured = (now, measured_errors(votes.said, votes.labels, votes.thresholds))
        return self._measured[1]

    def measured_of(self, voices: Sequence[str]) -> MeasuredErrors | None:
        """The shared errors of only these voices; None if they do not show how independent they are."""
        measured = self.measured()
        if measured.independence(voices) is None:
            return None
        pairs = tuple(pair for pair in measured.pairs if set(pair.voices) <= set(voices))
        return MeasuredErrors(voices=tuple(voices), n=measured.n, pairs=pairs)


def _round_one(first: int, last: int) -> sa.Select[Any]:
    return (
        sa.select(evaluations.c.circle_pk, evaluations.c.voice, evaluations.c.falsehood)
        .join(circles, circles.c.pk == evaluations.c.circle_pk)
        .where(circles.c.label.is_not(None), circles.c.pk.between(first, last))
        .where(evaluations.c.round_number == 1)
        .order_by(evaluations.c.circle_pk.desc())
    )
