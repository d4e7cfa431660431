"""`Store` and `open_store`: one database and everything in it, opened on first use."""

from __future__ import annotations

import threading
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from firecircle.store.place import Where, place_of
from firecircle.store.recorder import Recorder

if TYPE_CHECKING:
    from firecircle.store.bank.bank import Bank
    from firecircle.store.circles import CircleStore
    from firecircle.store.database import Database
    from firecircle.store.figures import CalibrationStore, IndependenceStore, RunStore, VerdictStore
    from firecircle.store.participation import ParticipationStore


# Database modules are imported on opening, so that commands without a store do not wait for them.


class Store:
    """Everything in one database: circles, participation, bank, calibrations and runs. It opens on first use.

    The command line passes this to a circle at once: the recorder's thread opens the database while the
    screen shows the voices. `open_store` opens it immediately.
    """

    def __init__(self, where: Where | None = None) -> None:
        """Takes a place as `open_store` does, and refuses only an impossible name."""
        self._place = place_of(where)
        self._opening = threading.Lock()
        self._database: Database | None = None
        self.recorder = Recorder(lambda: self.database)

    def __str__(self) -> str:
        """The place of the database."""
        return str(self._place)

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
        """Which voices took part in which sitting, and how circles were drawn."""
        from firecircle.store.participation import ParticipationStore

        return ParticipationStore(self.database)

    @cached_property
    def bank(self) -> Bank:
        """The patterns that circles found."""
        from firecircle.store.bank.bank import Bank

        return Bank(self.database)

    @cached_property
    def calibrations(self) -> CalibrationStore:
        """The circles counted for voices' declared characteristics."""
        from firecircle.store.figures import CalibrationStore

        return CalibrationStore(self.database)

    @cached_property
    def verdicts(self) -> VerdictStore:
        """The calibrations of the verdict that were fitted here."""
        from firecircle.store.figures import VerdictStore

        return VerdictStore(self.database)

    @cached_property
    def independence(self) -> IndependenceStore:
        """How the voices of labelled circles err together."""
        from firecircle.store.figures import IndependenceStore

        return IndependenceStore(self.database)

    @cached_property
    def runs(self) -> RunStore:
        """The runs of the lab, and their folders."""
        from firecircle.store.figures import RunStore

        return RunStore(self.database)

    @property
    def name(self) -> str:
        """Where it is, without any password."""
        return self.database.name

    def close(self) -> None:
        """Close the database."""
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
    """Open the store at a path or URL; by default that of `FIRECIRCLE_STORE` or the user's own file.

    It is created if it does not exist, and migrated if it is older.
    """
    store = Store(where)
    assert store.database
    return store
