"""Work on disk that one process does at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from firecircle.errors import ConfigError, StoreError


@contextmanager
def held_alone(file: Path, busy: ConfigError) -> Iterator[None]:
    """Hold the lock in this file, or raise `busy`. A killed process lets go of it."""
    with ExitStack() as held:
        try:
            lock = held.enter_context(closing(sqlite3.connect(file, timeout=0, isolation_level=None)))
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as trouble:
            if "locked" in str(trouble):
                raise busy from None
            raise StoreError(f"{file}: cannot be locked: {trouble}; remove it, if it is there") from None
        yield
