"""Check a store, and save what is readable in a damaged one into a new store.

A damaged store is only read. In a SQLite file whole pages may be lost, so tables are read row by row and
reading continues after unreadable rows.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from firecircle.errors import ConfigError, StoreError
from firecircle.store.circles import load_circle
from firecircle.store.database import Database, open_database
from firecircle.store.finding import LISTED, summary_of
from firecircle.store.place import Where, place_of
from firecircle.store.tables import circles, metadata

MOST_DAMAGE = 20
"""Lines shown of SQLite's own report."""
MOST_GAP = 10_000
"""Unreadable rows in succession that are tried one by one."""
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """The findings of a check."""

    name: str
    circles: int
    damage: tuple[str, ...]
    """What the database reports about its file; a PostgreSQL server checks its files itself."""
    unreadable: tuple[tuple[str, str], ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damage and not self.unreadable


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What a salvage saved into a new store."""

    circles: int
    rows: Mapping[str, int]
    lost: tuple[tuple[str, str], ...]
    """Circles that could not be saved, by id, and why."""


def check_store(where: Where | None = None) -> StoreCheck:
    """Read everything in a store and change nothing."""
    place = place_of(where)
    if isinstance(place, Path):
        return _check_file(place)
    database = open_database(place)
    try:
        lost = tuple(_unreadable(database))
        return StoreCheck(database.name, _count(database) - len(lost), (), lost)
    finally:
        database.close()


def salvage(where: Where | None, new: Path) -> Salvaged:
    """Copy every readable row into a new store, without unreadable circles."""
    place = place_of(where)
    if not isinstance(place, Path):
        raise ConfigError("--salvage", "only a SQLite file", "use pg_dump for a PostgreSQL store")
    if new.exists():
        raise ConfigError("--salvage", f"{new} is already there", "name a new file")
    database = open_database(new)
    try:
        with closing(_open_read_only(place)) as old:
            rows = {table.name: _copy_rows(old, database, table) for table in metadata.sorted_tables}
        lost = tuple(_unreadable(database))
        _delete(database, [name for name, _ in lost])
        return Salvaged(_count(database), rows, lost)
    finally:
        database.close()


def _check_file(place: Path) -> StoreCheck:
    with closing(_open_read_only(place)) as file:
        try:
            report = [line for (line,) in file.execute(f"PRAGMA integrity_check({MOST_DAMAGE})")]
            strays = file.execute("PRAGMA foreign_key_check").fetchmany(MOST_DAMAGE)
            report += [
                f"{table}: row {row} belongs to a missing row of {owner}" for table, row, owner, _ in strays
            ]
        except sqlite3.Error as broken:
            report = [str(broken)]
    damage = tuple(line for line in report if line != "ok")[:MOST_DAMAGE]
    if damage:  # opening it as usual might write to it
        with tempfile.TemporaryDirectory() as folder:
            saved = salvage(place, Path(folder) / "saved.db")
        return StoreCheck(str(place), saved.circles, damage, saved.lost)
    database = open_database(place)
    try:
        lost = tuple(_unreadable(database))
        return StoreCheck(str(place), _count(database) - len(lost), damage, lost)
    finally:
        database.close()


def _open_read_only(place: Path) -> sqlite3.Connection:
    if not place.is_file():
        raise StoreError(f"store: there is no store at {place}")
    file = sqlite3.connect(f"file:{quote(str(place))}?mode=ro", uri=True)
    file.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    return file


def _count(database: Database) -> int:
    with database.reading() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(circles)).scalar_one())


def _unreadable(database: Database) -> Iterator[tuple[str, str]]:
    with database.reading() as connection:
        ended = sa.select(circles.c.pk, circles.c.id).where(circles.c.status != "sitting")
        for pk, name in connection.execute(ended.order_by(circles.c.pk)).all():
            try:
                row = connection.execute(sa.select(*LISTED).where(circles.c.pk == pk)).mappings().one()
                load_circle(connection, summary_of(row))
            except (StoreError, ValueError, sa.exc.SQLAlchemyError) as broken:
                yield str(name), str(getattr(broken, "orig", broken)).partition("\n")[0]


def _delete(database: Database, ids: list[str]) -> None:
    with database.writing() as connection:
        for name in ids:
            connection.execute(circles.delete().where(circles.c.id == name))


def _copy_rows(old: sqlite3.Connection, new: Database, table: sa.Table) -> int:
    try:
        there = [row[1] for row in old.execute(f"PRAGMA table_info({table.name})")]
    except sqlite3.Error:
        return 0
    names = [column.name for column in table.columns if column.name in there]
    if not names:
        return 0
    insert = f"INSERT OR IGNORE INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    copied = 0
    with new.writing() as connection:
        owner, saved = _owners(connection, table)
        for row in _rows(old, table.name, names):
            if owner and dict(zip(names, row, strict=True)).get(owner) not in saved:
                continue  # its circle is lost
            try:
                copied += connection.exec_driver_sql(insert, row).rowcount
            except sa.exc.IntegrityError:
                continue
    return copied


def _owners(connection: sa.Connection, table: sa.Table) -> tuple[str | None, set[Any]]:
    """The column of a table that names the owner of a row, and the owners that were saved."""
    for column in table.columns:
        for key in column.foreign_keys:
            return column.name, set(connection.execute(sa.select(key.column)).scalars())
    return None, set()


def _rows(old: sqlite3.Connection, table: str, names: list[str]) -> Iterator[tuple[Any, ...]]:
    query = f"SELECT rowid, {', '.join(names)} FROM {table} WHERE rowid >= ? ORDER BY rowid"
    start, last, gap = -(2**63), _last_number(old, table), 0
    while gap <= MOST_GAP:
        try:
            for number, *row in old.execute(query, (start,)):
                yield tuple(row)
                start, gap = number + 1, 0
            return
        except sqlite3.Error:
            start, gap = max(start, 0) + 1, gap + 1
            if last is not None and start > last:
                return


def _last_number(old: sqlite3.Connection, table: str) -> int | None:
    try:
        last: int | None = old.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0]
        return last
    except sqlite3.Error:
        return None
