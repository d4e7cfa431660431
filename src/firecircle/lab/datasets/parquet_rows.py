"""Rows of a Parquet file, in batches through DuckDB, so that no file is too large."""

from __future__ import annotations

from collections.abc import Iterator
from glob import escape
from pathlib import Path

from firecircle.errors import ConfigError
from firecircle.lab.datasets.field_map import MAP_FIELDS, FieldMap
from firecircle.lab.datasets.record import Row

BATCH = 500
MEMORY_LIMIT = "256MB"


def parquet_rows(path: Path, field_map: FieldMap) -> Iterator[Row]:
    """Every row, with only the columns that the map may name."""
    try:
        import duckdb
    except ImportError:
        raise ConfigError(f"{path}: Parquet needs the extra `lab`: pip install 'firecircle[lab]'") from None

    file = escape(str(path))  # a star in a name is a star, not a wish for more files
    with duckdb.connect(config={"threads": 1, "memory_limit": MEMORY_LIMIT}) as connection:
        try:
            described = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [file]).fetchall()
            present = [str(column[0]) for column in described]
            wanted = [name for field in MAP_FIELDS if (name := field_map.name_of(field)) in present]
            # With no column of the map in the file, all are shown, so that the complaint can list them.
            columns = list(dict.fromkeys(wanted)) or present
            quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
            found = connection.execute(f"SELECT {quoted} FROM read_parquet(?)", [file])
            line = 0
            while batch := found.fetchmany(BATCH):
                for cells in batch:
                    line += 1
                    yield Row(line, dict(zip(columns, cells, strict=True)))
        except duckdb.Error as broken:
            told = str(broken).splitlines()[0]
            raise ConfigError(f"{path}: not a readable Parquet file ({told}); write it again") from None
