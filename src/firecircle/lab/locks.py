"""Work on disk that one process does at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firecircle.errors import ConfigError


@contextmanager
def held_alone(file: Path, busy: ConfigError) -> Iterator[None]:
    """Hold the lock in this file, or raise `busy`. A killed process lets go of it."""
    lock = sqlite3.connect(file, timeout=0, isolation_level=None)
    try:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error:
            raise busy from None
        yield
    finally:
        lock.close()
