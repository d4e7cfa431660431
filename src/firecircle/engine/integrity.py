"""Whether a journal is still as it was written: a checksum for each row, and one of them all.

SQLite notices damage to its own structure only: a number with a flipped bit is a number.
"""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Sequence
from typing import NamedTuple

_ROWS = {
    "calls": "the call of {5!r} about record {4!r} under arm {1!r}",
    "records": "record {12!r} under arm {2!r}",
}
"""The tables of a journal, and how to name a row of each."""


class JournalDigest(NamedTuple):
    """What a journal holds: the number of its rows, and the sum of their checksums."""

    calls: int
    records: int
    checksum: int


def checksum_of(row: Sequence[object]) -> int:
    """Of a row as SQLite gives it back: without truth values, and a whole number may have become a REAL."""
    return zlib.crc32(repr([_as_kept(value) for value in row]).encode("utf-8", "surrogatepass"))


def _as_kept(value: object) -> object:
    if not isinstance(value, int | float):
        return value
    return None if math.isnan(value) else float(value)


def add_checksums(journal: sqlite3.Connection) -> None:
    """Have room for checksums in a journal that an earlier version began."""
    for table in _ROWS:
        columns = journal.execute(f"SELECT * FROM {table} LIMIT 0").description
        if columns[-1][0] != "checksum":
            journal.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER")


def digest_of(journal: sqlite3.Connection, expected: JournalDigest | None) -> JournalDigest:
    """Look at every row; `ValueError` where one is not as it was written, or all are not what is expected."""
    calls, records = (_checked(journal, table) for table in _ROWS)
    found = JournalDigest(len(calls), len(records), sum(calls) + sum(records))
    if expected is not None and expected != found:
        raise ValueError(
            f"it holds {found.calls:,} calls and {found.records:,} records, and not what it held when the run"
            f" was finished ({expected.calls:,} and {expected.records:,})"
        )
    return found


def _checked(journal: sqlite3.Connection, table: str) -> list[int]:
    """The checksums of all rows of a table; those of earlier versions have none to compare with."""
    found = []
    rows = journal.cursor().execute(f"SELECT * FROM {table}")
    has_checksums = rows.description[-1][0] == "checksum"
    for row in rows:
        values, written = (row[:-1], row[-1]) if has_checksums else (row, None)
        checksum = checksum_of(values)
        if written not in (None, checksum):
            raise ValueError(f"{_ROWS[table].format(*values)} is not as it was written")
        found.append(checksum)
    return found
