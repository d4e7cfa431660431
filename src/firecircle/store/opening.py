"""A store as its users hold it: one database and everything that is kept in it."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from firecircle.store.circles import CircleStore
from firecircle.store.database import Database, open_database
from firecircle.store.recorder import Recorder


class Store:
    """Everything that is kept in one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.circles = CircleStore(database)
        self.recorder = Recorder(database)

    @property
    def name(self) -> str:
        """Where it is, without any password."""
        return self.database.name

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_store(where: str | os.PathLike[str] | None = None) -> Store:
    """Open the store at a path or URL; without one, that of `FIRECIRCLE_STORE` or the user's own file.

    It is created if it is not there, and brought up to this version if it is older.
    """
    return Store(open_database(where))
