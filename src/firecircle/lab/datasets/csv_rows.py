"""Rows of a CSV file, however its fields are separated and its lines broken."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from firecircle.errors import ConfigError
from firecircle.lab.datasets.record import BadRow, Row
from firecircle.prompt import MAX_LAYER_CHARS

LONGEST_FIELD = 8 * MAX_LAYER_CHARS
"""Past this a quote was never closed, and the rest of the file would be read as one field."""

_SEPARATORS = ",;\t|"


def csv_rows(path: Path) -> Iterator[Row | BadRow]:
    """Every row under the header, with the line it begins on."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    # Bytes that are no UTF-8 come through as lone surrogates, so that only their own row is refused.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        separator = _separator(file.readline(LONGEST_FIELD))
        file.seek(0)
        rows = csv.reader(file, delimiter=separator, strict=True)
        header = _next(rows, path, 1)
        if header is None:
            return
        if isinstance(header, BadRow):
            raise ConfigError(f"{path}: the header cannot be read: {header.reason}; mend the first line")
        _check(header, path)
        line = rows.line_num + 1
        while (cells := _next(rows, path, line)) is not None:
            if isinstance(cells, BadRow):
                yield cells
            elif cells:
                yield _row(line, header, cells)
            line = rows.line_num + 1


def _separator(header: str) -> str:
    return max(_SEPARATORS, key=header.count)


def _check(header: list[str], path: Path) -> None:
    for name in header:
        if header.count(name) > 1:
            raise ConfigError(f"{path}: two columns are called {name!r}; give each its own name")


def _next(rows: Iterator[list[str]], path: Path, line: int) -> list[str] | BadRow | None:
    try:
        return next(rows, None)
    except csv.Error as broken:
        if "end of data" in str(broken) or "field limit" in str(broken):
            raise ConfigError(
                f"{path}: line {line}: a quote in this row is never closed, so the rows after it cannot"
                " be told apart; close it"
            ) from None
        return BadRow(line, f"a quote inside a quoted field is not doubled ({broken})")


def _row(line: int, header: list[str], cells: list[str]) -> Row | BadRow:
    if len(cells) != len(header):
        return BadRow(line, f"{len(cells)} cells under {len(header)} column names")
    if any("\udc80" <= character <= "\udcff" for cell in cells if not cell.isascii() for character in cell):
        return BadRow(line, "the row is not UTF-8")
    return Row(line, dict(zip(header, cells, strict=True)))
