"""`records.parquet`: the journal's records as one table, written in a stream."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from firecircle.errors import StoreError
from firecircle.lab.records import COLUMNS, RunRecord
from firecircle.lab.runs.journal import Journal
from firecircle.shapes import Shape

MEMORY_LIMIT = "512MB"


def export_records(journal: Path, arms: Sequence[str], target: Path) -> int:
    """Write the table, all of it or nothing; how many rows it has."""
    import duckdb

    draft = target.with_name(f".{target.name}.part")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as folder:
        lines = Path(folder) / "records.jsonl"
        try:
            count = _write_lines(journal, arms, lines)
            columns = ", ".join(f"'{name}': '{kind}'" for name, kind in column_types().items())
            with duckdb.connect(config={"threads": 1, "memory_limit": MEMORY_LIMIT}) as database:
                database.execute("SET preserve_insertion_order = true")
                database.execute(
                    f"COPY (SELECT * FROM read_json(?, format='newline_delimited', columns={{{columns}}},"
                    f" maximum_object_size=67108864)) TO '{_quoted(draft)}'"
                    " (FORMAT parquet, COMPRESSION zstd)",
                    [str(lines)],
                )
            os.replace(draft, target)
        except (OSError, duckdb.Error) as broken:
            draft.unlink(missing_ok=True)
            told = str(broken).splitlines()[0]
            raise StoreError(
                f"{target}: cannot be written: {told}; mend that (is the disk full?) and run the same command"
                " again: the journal has everything"
            ) from None
    return count


def _write_lines(journal: Path, arms: Sequence[str], lines: Path) -> int:
    count = 0
    with Journal(journal) as kept, lines.open("wb") as file:
        for record in kept.all_records(arms):
            file.write(record + b"\n")
            count += 1
    return count


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


@cache
def column_types() -> dict[str, str]:
    """Every column of the table with its DuckDB type, as the shape of a record has it."""
    return {name: _type_of(RunRecord.model_fields[name].annotation) for name in COLUMNS}


_PLAIN = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}


def _type_of(annotation: Any) -> str:
    parts = [part for part in get_args(annotation) if part is not NoneType]
    origin = get_origin(annotation)
    if origin is tuple:
        return f"{_type_of(parts[0])}[]"
    if origin is Literal:
        return "VARCHAR"
    if parts:
        return _type_of(parts[0])
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Shape):
        fields = (f'"{name}" {_type_of(field.annotation)}' for name, field in annotation.model_fields.items())
        return f"STRUCT({', '.join(fields)})"
    raise TypeError(f"no column type for {annotation!r}")
