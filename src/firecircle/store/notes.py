"""Records about circles: the runs of the lab, and the circles that calibrations have counted."""

from __future__ import annotations

import time
from collections.abc import Iterable

import sqlalchemy as sa

from firecircle.shapes import Shape, Text
from firecircle.store.database import Database, insert_unless_there, storable
from firecircle.store.tables import calibrated, runs


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

    def forget(self, folder: str) -> None:
        """Delete a run whose folder is gone."""
        with self.database.writing() as connection:
            connection.execute(sa.delete(runs).where(runs.c.folder == storable(folder)))
