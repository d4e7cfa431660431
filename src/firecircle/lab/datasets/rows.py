"""Rows of a dataset, one at a time, from CSV, JSONL, Parquet and text files or a folder of texts."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from glob import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from firecircle.errors import ConfigError, install_command
from firecircle.files import read_regular, stays_in
from firecircle.lab.datasets.cleaning import (
    ENCODING_GLANCE,
    foreign_encoding,
    likely_encoding,
    not_utf8,
)
from firecircle.lab.datasets.record import LAYER_FIELDS, MAP_FIELDS, BadRow, FieldMap, Row
from firecircle.prompt import MAX_LAYER_CHARS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LONGEST_FIELD = 8 * MAX_LAYER_CHARS
"""In a longer field a quote was never closed, and the rest of the file would be read as one field."""

SEPARATORS = ",;\t|"


def csv_rows(path: Path) -> Iterator[Row | BadRow]:
    """Every row under the header, with the line it begins on."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    # Bytes that are not UTF-8 become lone surrogates, so that only their own row is refused.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        separator = max(SEPARATORS, key=file.readline(LONGEST_FIELD).count)
        file.seek(0)
        rows = csv.reader(file, delimiter=separator, strict=True)
        header = _next(rows, path, 1)
        if header is None:
            return
        if isinstance(header, BadRow):
            raise ConfigError(str(path), f"the header cannot be read: {header.reason}", "fix the first line")
        _check(header, path)
        line = rows.line_num + 1
        while (cells := _next(rows, path, line)) is not None:
            if isinstance(cells, BadRow):
                yield cells
            elif cells:
                yield _csv_row(line, header, cells)
            line = rows.line_num + 1


def _check(header: list[str], path: Path) -> None:
    for name in header:
        if header.count(name) > 1:
            raise ConfigError(str(path), f"two columns are called {name!r}", "give each its own name")


def _next(rows: Iterator[list[str]], path: Path, line: int) -> list[str] | BadRow | None:
    try:
        return next(rows, None)
    except csv.Error as broken:
        if "end of data" in str(broken) or "field limit" in str(broken):
            raise ConfigError(
                str(path),
                (
                    f"line {line}: a quote in this row is never closed, so the rows after it cannot be told"
                    " apart"
                ),
                "close it",
            ) from None
        return BadRow(line, f"a quote inside a quoted field is not doubled ({broken})")


def _csv_row(line: int, header: list[str], cells: list[str]) -> Row | BadRow:
    if len(cells) != len(header):
        return BadRow(line, f"{len(cells)} cells under {len(header)} column names")
    if any("\udc80" <= character <= "\udcff" for cell in cells if not cell.isascii() for character in cell):
        written = "".join(cells).encode("utf-8", "surrogateescape")
        return BadRow(line, not_utf8("the row", likely_encoding(written)))
    return Row(line, dict(zip(header, cells, strict=True)))


SIDECAR = ".json"
TABLES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
LARGEST_FILE = 4 * MAX_LAYER_CHARS
"""In bytes: a larger UTF-8 file has a text above the limit."""


def folder_rows(folder: Path, field_map: FieldMap) -> Iterator[Row | BadRow]:
    """Every file below the folder, in the order of names, without hidden ones."""
    number = 0
    for place, inner, files in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        names = set(files)
        texts = {Path(name).stem for name in files if not name.endswith(SIDECAR)}
        for name in sorted(name for name in files if not name.startswith(".")):
            if name.endswith(SIDECAR) and Path(name).stem in texts:
                continue
            number += 1
            sidecar = Path(name).stem + SIDECAR
            yield _file_row(
                number,
                Path(place) / name,
                Path(place) / sidecar if sidecar in names else None,
                folder,
                field_map,
            )


def _file_row(
    number: int, file: Path, sidecar: Path | None, folder: Path, field_map: FieldMap
) -> Row | BadRow:
    name = file.relative_to(folder).as_posix()
    if file.suffix == SIDECAR:
        return BadRow(number, f"{name}: a sidecar without its text file")
    if file.suffix in TABLES:
        return BadRow(number, f"{name}: a table among texts; name the file itself as the dataset")
    try:
        for part in (file, sidecar):
            if part is not None and not stays_in(folder, str(part.absolute())):
                return BadRow(number, f"{name}: a link out of the folder")
        written = read_regular(file, LARGEST_FILE)
        text = written.decode("utf-8-sig")
        extra_cells = _sidecar(sidecar)
    except UnicodeDecodeError:
        encoding = foreign_encoding(written[:ENCODING_GLANCE]) or likely_encoding(written[:ENCODING_GLANCE])
        return BadRow(number, f"{name}: {not_utf8('the text', encoding)}")
    except (ValueError, RecursionError):
        return BadRow(number, f"{name}: its sidecar is not a JSON object")
    except OSError as unreadable:
        return BadRow(number, f"{name}: {unreadable.strerror}")
    if "\0" in text:
        return BadRow(number, f"{name}: not a text file")
    cells: dict[str, object] = {field_map.user or "user": text, field_map.id or "id": name}
    folders = file.relative_to(folder).parts[:-1]
    labels = [part for part in folders if field_map.knows_label(part)]
    families = [part for part in folders if part not in labels]
    if labels and field_map.label is not None:
        cells[field_map.label] = labels[-1]
    if families and field_map.family is not None:
        cells[field_map.family] = families[-1]
    return Row(number, {**cells, **extra_cells})


def _sidecar(path: Path | None) -> dict[str, object]:
    if path is None:
        return {}
    cells = json.loads(read_regular(path, 4 * LARGEST_FILE))
    if not isinstance(cells, dict):
        raise ValueError
    return cells


LONGEST_LINE = 16 * MAX_LAYER_CHARS
"""In bytes: four layers with four bytes per character. Nested lists take twenty times the memory."""


def jsonl_rows(path: Path, skip: int = 0) -> Iterator[Row | BadRow]:
    """The JSON object of every line that is not blank, after the first `skip`."""
    for number, line in islice(_lines(path), skip, None):
        yield line if isinstance(line, BadRow) else _jsonl_row(number, line)


def _lines(path: Path) -> Iterator[tuple[int, bytes | BadRow]]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                _skip_rest_of_line(file)
                yield number, BadRow(number, f"the line is longer than {LONGEST_LINE:,} bytes")
            elif line.strip():
                yield number, line


def _skip_rest_of_line(file: BinaryIO) -> None:
    while (more := file.readline(LONGEST_LINE)) and not more.endswith(b"\n"):
        pass


def _jsonl_row(number: int, line: bytes) -> Row | BadRow:
    try:
        cells = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        return BadRow(number, not_utf8("the line", likely_encoding(line)))
    except json.JSONDecodeError as broken:
        return BadRow(number, f"the line is not JSON: {broken.msg} at character {broken.colno}")
    except (ValueError, RecursionError):
        return BadRow(number, "the line is JSON too deep or too large to read")
    if not isinstance(cells, dict):
        return BadRow(number, "the line is not a JSON object")
    return Row(number, cells)


def text_rows(path: Path, skip: int = 0) -> Iterator[Row | BadRow]:
    """Every line that is not blank, as the user's message, after the first `skip`."""
    for number, line in islice(_lines(path), skip, None):
        if isinstance(line, BadRow):
            yield line
            continue
        try:
            yield Row(number, {"user": line.decode("utf-8-sig" if number == 1 else "utf-8").strip()})
        except UnicodeDecodeError:
            yield BadRow(number, not_utf8("the line", likely_encoding(line)))


BATCH = 500
MEMORY_LIMIT = "256MB"
VECTOR = 2048
"""DuckDB reads this many rows of a row group at a time, however long they are."""
LARGEST_VECTOR = 128_000_000
"""In bytes. A file of kilobytes may have a text of megabytes once and repeat it in every row."""


def parquet_rows(
    path: Path, field_map: FieldMap, skip: int = 0, *, whole: bool = False
) -> Iterator[Row | BadRow]:
    """Every row after the first `skip`, with only the columns that the map may name."""
    try:
        import duckdb
    except ImportError:
        raise ConfigError(str(path), f"Parquet needs the extra `lab`: {install_command('lab')}") from None

    file = escape(str(path))  # a star in a name is literal, not a pattern
    with duckdb.connect(config={"threads": 1, "memory_limit": MEMORY_LIMIT}) as connection:
        try:
            described = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [file]).fetchall()
            present = [str(column[0]) for column in described]
            field_map = field_map.fitted_to(present)
            mapped = [name for field in MAP_FIELDS if (name := field_map.name_of(field)) in present]
            # Without a text column all are read, so that the error can list them.
            has_text = any(field_map.name_of(field) in present for field in LAYER_FIELDS)
            columns = list(dict.fromkeys(mapped)) if has_text and not whole else present
            quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
            kinds = {str(name): str(kind) for name, kind, *_ in described}
            sizes = [
                f"coalesce(strlen({column if kinds[name] == 'VARCHAR' else f'CAST({column} AS VARCHAR)'}), 0)"
                for name, column in zip(columns, quoted, strict=True)
            ]
            _require_small_vectors(connection, file, " + ".join(sizes), path)
            fits = f"{' + '.join(sizes)} <= {LONGEST_LINE}"
            chosen = ", ".join(f"CASE WHEN {fits} THEN {column} END" for column in quoted)
            result = connection.execute(
                f"SELECT {fits}, {chosen} FROM read_parquet(?) OFFSET {skip:d}", [file]
            )
            line = skip
            while batch := result.fetchmany(BATCH):
                for is_short, *cells in batch:
                    line += 1
                    if is_short:
                        yield Row(line, dict(zip(columns, cells, strict=True)))
                    else:
                        yield BadRow(line, f"the row is longer than {LONGEST_LINE:,} bytes")
        except duckdb.Error as broken:
            reason = str(broken).splitlines()[0]
            raise ConfigError(
                str(path), f"not a readable Parquet file ({reason})", "write it again"
            ) from None


def _require_small_vectors(connection: DuckDBPyConnection, file: str, size: str, path: Path) -> None:
    """Refuse a file that would take gigabytes to read; `size` is an expression for the bytes of a row."""
    (most,) = connection.execute(
        "SELECT max(row_group_num_rows) FROM parquet_metadata(?)", [file]
    ).fetchall()[0]
    rows = max(1, min(VECTOR, most or 1))
    (largest,) = connection.execute(
        "SELECT max(bytes) FROM"
        f" (SELECT sum(CASE WHEN {size} <= {LONGEST_LINE} THEN {size} ELSE 0 END) AS bytes"
        f" FROM read_parquet(?, file_row_number = true) GROUP BY file_row_number // {rows})",
        [file],
    ).fetchall()[0]
    if (largest or 0) > LARGEST_VECTOR:
        raise ConfigError(
            str(path),
            f"{rows:,} rows of it take {largest:,} bytes, more than {LARGEST_VECTOR:,}",
            "write it as JSON lines",
        )
