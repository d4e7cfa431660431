"""Which voices took part in which sitting, and how circles were drawn: append-only rows.

The shapes of a row and a draw belong to `rotation`, which this package does not import: `convene` passes them
in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from firecircle.errors import StoreError
from firecircle.shapes import Shape, config_error
from firecircle.store.database import Database, insert_unless_there, storable
from firecircle.store.tables import draws, participations
from firecircle.store.tally import Tally

AT_ONCE = 1000
"""Rows read at once; nothing stays open in between."""

Row = Mapping[str, object]
RowShape = TypeVar("RowShape", bound=Shape)
DrawShape = TypeVar("DrawShape", bound=Shape)

_FACTS = tuple(column for column in participations.c if column.name != "pk")


LATEST = 1e18
"""In seconds since 1970; a larger value is not a time."""
_of = participations.c
_WORDS = (_of.voice_id, _of.session_id, _of.decision_domain, _of.role_played)
_DAMAGED = (
    # In SQLite a text is greater than every number, and so is NaN in PostgreSQL.
    sa.not_(_of.at.between(-LATEST, LATEST)),
    sa.not_(sa.func.coalesce(_of.contribution_quality, 0.0).between(0, 1)),
    *(word == "" for word in _WORDS),
)
# PostgreSQL rejects other types.
_OF_ANOTHER_TYPE = (
    _of.was_empty_chair.not_in([sa.true(), sa.false()]),
    *(sa.func.typeof(word) != "text" for word in _WORDS),
)
_TALLIES = sa.select(
    _of.voice_id,
    _of.decision_domain,
    sa.func.count().label("count"),
    sa.func.max(_of.at).label("last_heard"),
    sa.func.count().filter(_of.was_empty_chair).label("chair_count"),
    sa.func.max(_of.at).filter(_of.was_empty_chair).label("last_chair"),
    sa.func.count(_of.contribution_quality).label("measured"),
    sa.func.avg(_of.contribution_quality).label("quality"),
).group_by(_of.voice_id, _of.decision_domain)


class BrokenRowError(Exception):
    """Says why a row cannot be read."""


_TALLIED = tuple(column.name for column in fields(Tally))


class ParticipationStore:
    """The participation history of one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def read_as(self, row: type[RowShape], draw: type[DrawShape]) -> StoredHistory[RowShape, DrawShape]:
        """The history in these shapes: a row's fields are the columns, a draw has a `draw_id` and an `at`."""
        return StoredHistory(self.database, row, draw)


class StoredHistory(Generic[RowShape, DrawShape]):
    """A persistent participation history; several processes may add to it at once."""

    def __init__(self, database: Database, row: type[RowShape], draw: type[DrawShape]) -> None:
        self._database = database
        self._row, self._draw = row, draw

    def append(self, row: RowShape) -> None:
        """Save one row. The same row again changes nothing; another of that voice and sitting is refused."""
        facts = {
            name: storable(value) if isinstance(value, str) else value
            for name, value in row.model_dump().items()
        }

        def add(connection: Connection) -> dict[str, object]:
            new = insert_unless_there(connection.dialect.name, participations)
            if connection.execute(new.returning(participations.c.pk), facts).first() is not None:
                return facts
            same_seat = [participations.c[name] == facts[name] for name in ("session_id", "voice_id")]
            return dict(connection.execute(sa.select(*_FACTS).where(*same_seat)).mappings().one())

        if self._database.write(add) != facts:
            raise StoreError(
                f"history: {facts['voice_id']} is in sitting {facts['session_id']} already, with other facts;"
                " the saved history is unchanged"
            )

    def participations(
        self, *, voice_id: str | None = None, decision_domain: str | None = None
    ) -> Iterator[RowShape]:
        """The rows, oldest first; of one voice or one domain, if given."""
        at, pk = participations.c.at, participations.c.pk
        query = sa.select(*_raw_columns(participations)).order_by(at, pk).limit(AT_ONCE)
        if voice_id is not None:
            query = query.where(participations.c.voice_id == voice_id)
        if decision_domain is not None:
            query = query.where(participations.c.decision_domain == decision_domain)
        page = self._page(query)
        while page:
            for row in page:
                try:
                    yield self._row_in(dict(row))
                except BrokenRowError as why:
                    raise self._damaged_row_error(participations, dict(row), why) from None
            last = page[-1]
            page = self._page(query.where(sa.tuple_(at, pk) > sa.tuple_(last["at"], last["pk"])))

    def tallies(
        self, voices: Collection[str] | None = None, *, before: DrawShape | None = None
    ) -> list[Tally]:
        """The sums of each voice's rows in each domain, without reading them one by one.

        `before` limits them to the rows that existed when a draw was recorded; for an imported draw, by its
        time.
        """
        query = _TALLIES if before is None else _TALLIES.where(self._before(before))
        damaged = sa.or_(*_DAMAGED, *(_OF_ANOTHER_TYPE if self._database.is_sqlite else ()))
        # Of all voices: a damaged row may have lost its voice's name, and a draw must not overlook it.
        rows = self._page(query.add_columns(sa.func.count().filter(damaged).label("damaged")))
        if any(row["damaged"] or isinstance(row["voice_id"], bytes) for row in rows):
            for _ in self.participations():  # raises with the row
                pass
        asked = None if voices is None else set(map(storable, voices))
        return [
            Tally(**{name: row[name] for name in _TALLIED})
            for row in rows
            if asked is None or row["voice_id"] in asked
        ]

    def _before(self, draw: DrawShape) -> sa.ColumnElement[bool]:
        drawn = draw.model_dump(include={"draw_id", "at"})
        query = sa.select(draws.c.newest_row).where(draws.c.draw_id == drawn["draw_id"])
        with self._database.reading() as connection:
            newest = connection.execute(query).scalar_one_or_none()
        if newest is None:
            return participations.c.at < sa.literal(float(drawn["at"]))
        return participations.c.pk <= sa.literal(int(newest))

    def sittings(self, voices: Collection[str] | None = None) -> int:
        """The number of sittings; of these voices, if given."""
        query = sa.select(sa.func.count(_of.session_id.distinct())).where(*_of_voices(voices))
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def record_draw(self, draw: DrawShape, *, imported: bool = False) -> None:
        """Save one draw; its id is a digest of it, so the same draw again changes nothing."""
        values = draw.model_dump(include={"draw_id", "at"})
        values["body"] = draw.model_dump_json()

        def add(connection: Connection) -> None:
            if not imported:
                newest = sa.select(sa.func.max(participations.c.pk))
                values["newest_row"] = connection.execute(newest).scalar_one() or 0
            connection.execute(insert_unless_there(connection.dialect.name, draws), values)

        self._database.write(add)

    def draws(self) -> Iterator[DrawShape]:
        """The draws, oldest first."""
        at, pk = draws.c.at, draws.c.pk
        query = sa.select(*_raw_columns(draws)).order_by(at, pk).limit(AT_ONCE)
        page = self._page(query)
        while page:
            for row in page:
                try:
                    yield self._draw_in(dict(row))
                except BrokenRowError as why:
                    raise self._damaged_row_error(draws, dict(row), why) from None
            last = page[-1]
            page = self._page(query.where(sa.tuple_(at, pk) > sa.tuple_(last["at"], last["pk"])))

    def _row_in(self, row: Row) -> RowShape:
        facts = {name: value for name, value in row.items() if name != "pk"}
        for name, value in facts.items():
            if isinstance(value, bytes):
                raise BrokenRowError(f"row.{name}: bytes that are no text")
        # As strict as `_DAMAGED`: the sums reject values that the shape would accept as true or as a time.
        if facts["was_empty_chair"] not in (True, False):
            raise BrokenRowError(
                f"row.was_empty_chair: {facts['was_empty_chair']!r} is neither true nor false"
            )
        if not _is_time(facts["at"]):
            raise BrokenRowError(f"row.at: {facts['at']!r} is not a time")
        try:
            return self._row.model_validate(facts)
        except ValidationError as damaged:
            raise BrokenRowError(str(config_error(damaged, "row"))) from None

    def _draw_in(self, row: Row) -> DrawShape:
        if not _is_time(row["at"]):
            raise BrokenRowError(f"row.at: {row['at']!r} is not a time")
        try:
            return self._draw.model_validate_json(row["body"])  # type: ignore[arg-type]  # text, or refused
        except ValidationError as damaged:
            raise BrokenRowError(str(config_error(damaged, "row"))) from None

    def _damaged_row_error(self, table: sa.Table, row: Row, why: BrokenRowError) -> StoreError:
        """The refusal. A history is evidence: it is never reset, and a broken row is never guessed."""
        return StoreError(
            f"history: {self._database.name} has a damaged row: {table.name} {row['pk']}: {why}; nothing was"
            f" changed; fix the row, or save a copy and DELETE FROM {table.name} WHERE pk = {row['pk']}"
        )

    def _page(self, query: sa.Select[Any]) -> list[sa.RowMapping]:
        with self._database.reading() as connection, _read_undecodable_as_bytes(connection):
            return list(connection.execute(query).mappings())


def _raw_columns(table: sa.Table) -> list[sa.Label[Any]]:
    """The columns with their raw values: a SQLite file may contain any type in any column."""
    return [sa.type_coerce(column, sa.types.NullType()).label(column.name) for column in table.c]


@contextmanager
def _read_undecodable_as_bytes(connection: Connection) -> Iterator[None]:
    """Read undecodable text as bytes; otherwise SQLite refuses the whole answer."""
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


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) <= LATEST


def _of_voices(voices: Collection[str] | None) -> list[sa.ColumnElement[bool]]:
    return [] if voices is None else [_of.voice_id.in_(list(map(storable, voices)))]
