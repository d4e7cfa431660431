"""A store as its users hold it: one database and everything that is kept in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

import sqlalchemy as sa

from firecircle.shapes import Shape, Text
from firecircle.store.address import Where, place_of
from firecircle.store.database import Database, insert_unless_there
from firecircle.store.recorder import Recorder
from firecircle.store.rows import storable
from firecircle.store.tables import calibrated, runs

if TYPE_CHECKING:
    from firecircle.store.bank.bank import Bank
    from firecircle.store.circles import CircleStore
    from firecircle.store.database import Database
    from firecircle.store.participation import ParticipationStore


class CalibrationStore:
    """What calibrations of one database have counted."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def counted_for(self, circle_id: str) -> frozenset[str]:
        """The voices for whom this circle has been counted."""
        query = sa.select(calibrated.c.voice).where(calibrated.c.circle_id == storable(circle_id))
        with self.database.reading() as connection:
            return frozenset(connection.execute(query).scalars())

    def record(self, counted: Iterable[tuple[str, str]]) -> None:
        """Keep that these circles were counted for these voices: pairs of a circle's id and a voice."""
        now = time.time()
        rows = [
            {"circle_id": storable(circle), "voice": storable(voice), "at": now} for circle, voice in counted
        ]
        if rows:
            with self.database.writing() as connection:
                connection.execute(insert_unless_there(connection.dialect.name, calibrated), rows)


class KnownRun(Shape):
    """One run as the store knows it."""

    folder: Text
    run_id: Text
    plan: Text
    digest: Text
    arms: tuple[Text, ...]
    judgements: int
    started_at: float
    finished_at: float | None = None


class RunStore:
    """The runs that one database knows of."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def begin(self, run: KnownRun) -> None:
        """Take note of a run; one that is taken up again is known already."""
        row = {**run.model_dump(), "arms": "\n".join(run.arms)}
        told = {name: storable(value) if isinstance(value, str) else value for name, value in row.items()}
        with self.database.writing() as connection:
            connection.execute(insert_unless_there(connection.dialect.name, runs), [told])

    def finish(self, folder: str) -> None:
        """Note that a run is over."""
        with self.database.writing() as connection:
            changed = sa.update(runs).where(runs.c.folder == storable(folder))
            connection.execute(changed.values(finished_at=time.time()))

    def each(self) -> tuple[KnownRun, ...]:
        """Every run, the newest first."""
        query = sa.select(runs).order_by(runs.c.started_at.desc())
        with self.database.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return tuple(KnownRun(**{**row, "arms": tuple(row["arms"].split("\n"))}) for row in rows)

    def forget(self, folder: str) -> None:
        """Take out a run whose folder is gone."""
        with self.database.writing() as connection:
            connection.execute(sa.delete(runs).where(runs.c.folder == storable(folder)))


class Store:
    """Everything that is kept in one database, which is opened when it is first needed.

    A command line hands this to a circle at once: the recorder's thread opens the database while the screen
    shows who will be asked. `open_store` opens it there and then.
    """

    def __init__(self, where: Where | None = None) -> None:
        """Names the place as `open_store` does; only a name that cannot be one is refused here."""
        self._place = place_of(where)
        self._opening = threading.Lock()
        self._database: Database | None = None
        self.recorder = Recorder(lambda: self.database)

    @property
    def database(self) -> Database:
        """The database, open."""
        with self._opening:
            if self._database is None:
                from firecircle.store.database import open_database

                self._database = open_database(self._place)
            return self._database

    @cached_property
    def circles(self) -> CircleStore:
        """The circles and panels."""
        from firecircle.store.circles import CircleStore

        return CircleStore(self.database)

    @cached_property
    def participation(self) -> ParticipationStore:
        """Who took part in which sitting, and how circles were drawn."""
        from firecircle.store.participation import ParticipationStore

        return ParticipationStore(self.database)

    @cached_property
    def bank(self) -> Bank:
        """The patterns that circles found."""
        from firecircle.store.bank.bank import Bank

        return Bank(self.database)

    @cached_property
    def calibrations(self) -> CalibrationStore:
        """Which circles have counted for what voices declare."""

        return CalibrationStore(self.database)

    @cached_property
    def runs(self) -> RunStore:
        """Which runs of the lab there are, and where."""

        return RunStore(self.database)

    @property
    def name(self) -> str:
        """Where it is, without any password."""
        return self.database.name

    def close(self) -> None:
        """Let go of the database."""
        with self._opening:
            if self._database is not None:
                self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_store(where: Where | None = None) -> Store:
    """Open the store at a path or URL; without one, that of `FIRECIRCLE_STORE` or the user's own file.

    It is created if it is not there, and brought up to this version if it is older.
    """
    store = Store(where)
    assert store.database
    return store
