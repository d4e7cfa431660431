"""Tables written whole, with DuckDB."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

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
