"""Files of the lab: exclusive locks, and tables written whole."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from firecircle.errors import ConfigError, StoreError


@contextmanager
def exclusive_lock(file: Path, busy: ConfigError) -> Iterator[None]:
    """Lock this file, or raise `busy`. A killed process releases the lock."""
    with ExitStack() as held:
        try:
            lock = held.enter_context(closing(sqlite3.connect(file, timeout=0, isolation_level=None)))
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as trouble:
            if "locked" in str(trouble):
                raise busy from None
            raise StoreError(f"{file}: cannot be locked: {trouble}; remove it, if it is there") from None
        yield


MEMORY_LIMIT = "512MB"
LARGEST_ROW = 1 << 26


def lines_to_parquet(
    lines: Path, columns: Mapping[str, str], target: Path, *, renamed: Mapping[str, str] | None = None
) -> None:
    """Write a table with these columns and their DuckDB types. Raises `OSError` or `duckdb.Error`."""
    import duckdb

    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    typed = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    names = ", ".join(f"{field} AS {column}" for field, column in (renamed or {}).items())
    chosen = f"* RENAME ({names})" if names else "*"
    try:
        with duckdb.connect(config={"threads": 1, "memory_limit": MEMORY_LIMIT}) as database:
            database.execute("SET preserve_insertion_order = true")
            database.execute(
                f"COPY (SELECT {chosen} FROM read_json(?, format='newline_delimited', columns={{{typed}}},"
                f" maximum_object_size={LARGEST_ROW}))"
                f" TO '{sql_path(draft)}' (FORMAT parquet, COMPRESSION zstd)",
                [str(lines)],
            )
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def sql_path(path: Path) -> str:
    """A path inside the quotes of an SQL string."""
    return str(path).replace("'", "''")
