"""A participation history with broken rows: a copy is written first, then the user may delete what is broken.

A history is evidence. Nothing here resets it, or guesses what a broken row may have meant.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from firecircle.errors import StoreError
from firecircle.settings import user_folder
from firecircle.store.database import Database
from firecircle.store.tables import draws, participations

AT_ONCE = 1000
"""How many rows are read or taken out in one go."""
KIND = "firecircle broken participation history"
HISTORY = (participations, draws)

Row = Mapping[str, object]
Read = Callable[[Row], object]
"""Makes of a row what it stands for, or raises `BrokenRowError`."""


class BrokenRowError(Exception):
    """Why a row cannot be read."""


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """A row that cannot be read."""

    row: Row
    why: str

    @property
    def pk(self) -> object:
        """Its key."""
        return self.row["pk"]


@dataclass(frozen=True, slots=True)
class Damage:
    """All rows of a history that cannot be read."""

    participations: tuple[BrokenRow, ...]
    draws: tuple[BrokenRow, ...]

    def __bool__(self) -> bool:
        return bool(self.participations or self.draws)

    def of(self, table: sa.Table) -> tuple[BrokenRow, ...]:
        """Those of a table."""
        return self.draws if table is draws else self.participations


def raw_columns(table: sa.Table) -> list[sa.Label[Any]]:
    """The columns, with whatever is in them: a file of SQLite may hold anything anywhere."""
    return [sa.type_coerce(column, sa.types.NullType()).label(column.name) for column in table.c]


@contextmanager
def undecodable_as_bytes(connection: Connection) -> Iterator[None]:
    """Read bytes that are no text as what they are; else SQLite refuses the whole answer."""
    raw = connection.connection.driver_connection
    if not isinstance(raw, sqlite3.Connection):
        yield
        return
    raw.text_factory = _text_or_bytes
    try:
        yield
    finally:
        raw.text_factory = str


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def find_damage(connection: Connection, readers: Mapping[sa.Table, Read]) -> Damage:
    """What of the history cannot be read, inside a transaction."""
    broken = {
        table: tuple(
            BrokenRow(row, why) for row in _rows(connection, table) if (why := _trouble(row, readers[table]))
        )
        for table in HISTORY
    }
    return Damage(broken[participations], broken[draws])


def _trouble(row: Row, read: Read) -> str | None:
    try:
        read(row)
    except BrokenRowError as why:
        return str(why)
    return None


def _rows(connection: Connection, table: sa.Table) -> Iterator[Row]:
    query = sa.select(*raw_columns(table)).order_by(table.c.pk).limit(AT_ONCE)
    page = connection.execute(query).mappings().all()
    while page:
        yield from map(dict, page)
        page = connection.execute(query.where(table.c.pk > page[-1]["pk"])).mappings().all()


def delete_broken(connection: Connection, damage: Damage) -> None:
    """Delete the rows that cannot be read; `write_copy` comes first."""
    for table in HISTORY:
        keys = [broken.pk for broken in damage.of(table)]
        for first in range(0, len(keys), AT_ONCE):
            connection.execute(sa.delete(table).where(table.c.pk.in_(keys[first : first + AT_ONCE])))


# -- the copy ------------------------------------------------------------------------------------------------


def write_copy(connection: Connection, database: Database, damage: Damage) -> Path:
    """Write every row of the history, readable or not, to a file beside the database, unless it is there.

    The name follows from what is broken: the same damage is copied once, however often it is met and whatever
    is added to the history meanwhile. On a server's history it lies in the user's data folder.
    """
    place = database.engine.url
    of_what = [[_plain(broken.row) for broken in damage.of(table)] for table in HISTORY]
    content = json.dumps([place.render_as_string(hide_password=True), of_what], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()
    folder = Path(place.database or "").parent if database.is_sqlite else user_folder("data")
    path = folder / f"participation-broken-{digest[:12]}.json"
    if _holds(path, digest):
        return path
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # As the database, it is nobody else's business: such a file is made for its owner alone.
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=folder, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                _write(file, connection, {"kind": KIND, "digest": digest, "store": database.name}, damage)
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as unwritable:
        raise StoreError(
            f"history: cannot write a copy to {folder}: {unwritable.strerror or unwritable};"
            " make room or make it writable"
        ) from None
    return path


def _holds(path: Path, digest: str) -> bool:
    """Whether this copy is there, whole."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and document.get("digest") == digest


def _write(file: IO[str], connection: Connection, about: Mapping[str, str], damage: Damage) -> None:
    """A row a line, since a history may be long."""
    unreadable = {
        table.name: [{"pk": broken.pk, "why": broken.why} for broken in damage.of(table)] for table in HISTORY
    }
    parts = [
        f"{json.dumps(name)}: {json.dumps(value)}"
        for name, value in {**about, "unreadable": unreadable}.items()
    ]
    file.write("{" + ",\n".join(parts))
    for table in HISTORY:
        file.write(f",\n{json.dumps(table.name)}: [")
        for number, row in enumerate(_rows(connection, table)):
            file.write((",\n" if number else "\n") + json.dumps(_plain(row)))
        file.write("]")
    file.write("}\n")


def _plain(row: Row) -> dict[str, object]:
    return {name: _as_json(value) for name, value in row.items()}


def _as_json(value: object) -> object:
    """A value for JSON; what JSON cannot hold is wrapped and named."""
    if isinstance(value, bytes | memoryview):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value
