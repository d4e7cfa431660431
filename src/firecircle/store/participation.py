"""Who took part in which sitting, and how circles were drawn: rows that are only ever added.

The shapes of a row and of a draw belong to the room that invites, which this one does not know: whoever
brings the two together says what to read them as.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from pydantic import ValidationError

from firecircle.errors import StoreError
from firecircle.shapes import Shape, one_line
from firecircle.store.database import Database, insert_unless_there
from firecircle.store.rows import storable
from firecircle.store.tables import draws, participations

AT_ONCE = 1000
"""How many rows are read in one go; nothing is held open in between."""

RowShape = TypeVar("RowShape", bound=Shape)
DrawShape = TypeVar("DrawShape", bound=Shape)

_FACTS = tuple(column for column in participations.c if column.name != "pk")


_of = participations.c
_DAMAGED = sa.or_(
    # What is no number is greater than all of them in SQLite, and so is NaN in PostgreSQL.
    sa.not_(_of.at.between(-1e18, 1e18)),
    sa.not_(sa.func.coalesce(_of.contribution_quality, 0.0).between(0, 1)),
    *(_of[name] == "" for name in ("voice_id", "session_id", "decision_domain", "role_played")),
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
    sa.func.count().filter(_DAMAGED).label("damaged"),
).group_by(_of.voice_id, _of.decision_domain)


@dataclass(frozen=True, slots=True)
class ParticipationTally:
    """One voice's rows in one domain, added up by the database."""

    voice_id: str
    decision_domain: str
    count: int
    last_heard: float
    chair_count: int
    last_chair: float | None
    measured: int
    """In so many of them the quality of the contribution was measured; `quality` is the mean."""
    quality: float | None


_TALLIED = tuple(one.name for one in fields(ParticipationTally))


class ParticipationStore:
    """The participation history of one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def read_as(self, row: type[RowShape], draw: type[DrawShape]) -> KeptHistory[RowShape, DrawShape]:
        """The history in these shapes: a row's fields are the columns, a draw has a `draw_id` and an `at`."""
        return KeptHistory(self.database, row, draw)


class KeptHistory(Generic[RowShape, DrawShape]):
    """A participation history that survives the process; several processes may add to it at once."""

    def __init__(self, database: Database, row: type[RowShape], draw: type[DrawShape]) -> None:
        self._database = database
        self._row, self._draw = row, draw

    def append(self, row: RowShape) -> None:
        """Keep one row. The same again changes nothing; another of that voice and sitting is refused."""
        facts = {
            name: storable(value) if isinstance(value, str) else value
            for name, value in row.model_dump().items()
        }
        with self._database.writing() as connection:
            new = insert_unless_there(connection.dialect.name, participations)
            if connection.execute(new.returning(participations.c.pk), facts).first() is not None:
                return
            same_seat = [participations.c[name] == facts[name] for name in ("session_id", "voice_id")]
            known = connection.execute(sa.select(*_FACTS).where(*same_seat)).mappings().one()
        if dict(known) != facts:
            raise StoreError(
                f"history: {facts['voice_id']} is in sitting {facts['session_id']} already, with other facts;"
                " what is kept stays as it is"
            )

    def participations(
        self, *, voice_id: str | None = None, decision_domain: str | None = None
    ) -> Iterator[RowShape]:
        """The rows, oldest first; of one voice or one domain, if asked."""
        at, pk = participations.c.at, participations.c.pk
        query = sa.select(pk, *_FACTS).order_by(at, pk).limit(AT_ONCE)
        if voice_id is not None:
            query = query.where(participations.c.voice_id == voice_id)
        if decision_domain is not None:
            query = query.where(participations.c.decision_domain == decision_domain)
        page = self._page(query)
        while page:
            for found in page:
                yield self._read_row(dict(found))
            last = page[-1]
            page = self._page(query.where(sa.tuple_(at, pk) > sa.tuple_(last["at"], last["pk"])))

    def tallies(
        self, voices: Collection[str] | None = None, *, before: float | None = None
    ) -> list[ParticipationTally]:
        """What each voice's rows in each domain add up to, without reading them one by one."""
        query = _TALLIES if before is None else _TALLIES.where(_of.at < before)
        found = self._page(query.where(*_sat(voices)))
        if any(row["damaged"] for row in found):
            for _ in self.participations():  # tells which row it is
                pass
        return [ParticipationTally(**{name: row[name] for name in _TALLIED}) for row in found]

    def sittings(self, voices: Collection[str] | None = None) -> int:
        """How many sittings there were; of these voices, if asked."""
        query = sa.select(sa.func.count(_of.session_id.distinct())).where(*_sat(voices))
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def record_draw(self, draw: DrawShape) -> None:
        """Keep one draw; its id tells everything, so the same draw again changes nothing."""
        told = draw.model_dump(include={"draw_id", "at"})
        with self._database.writing() as connection:
            told["body"] = draw.model_dump_json()
            connection.execute(insert_unless_there(connection.dialect.name, draws), told)

    def draws(self) -> Iterator[DrawShape]:
        """The draws, oldest first."""
        at, pk = draws.c.at, draws.c.pk
        query = sa.select(pk, at, draws.c.draw_id, draws.c.body).order_by(at, pk).limit(AT_ONCE)
        page = self._page(query)
        while page:
            for found in page:
                yield self._read_draw(found["draw_id"], found["body"])
            last = page[-1]
            page = self._page(query.where(sa.tuple_(at, pk) > sa.tuple_(last["at"], last["pk"])))

    def _page(self, query: sa.Select[Any]) -> list[sa.RowMapping]:
        with self._database.reading() as connection:
            return list(connection.execute(query).mappings())

    def _read_row(self, found: dict[str, Any]) -> RowShape:
        pk = found.pop("pk")
        try:
            return self._row(**found)
        except ValidationError as damaged:
            raise self._refused(f"participation {pk}", damaged) from None

    def _read_draw(self, draw_id: str, body: str) -> DrawShape:
        try:
            return self._draw.model_validate_json(body)
        except ValidationError as damaged:
            raise self._refused(f"draw {draw_id}", damaged) from None

    def _refused(self, what: str, damaged: ValidationError) -> StoreError:
        return StoreError(
            f"history: {what} in {self._database.name} is damaged: {one_line(damaged, 'row')};"
            " it was left as it is: mend or remove that row"
        )


def _sat(voices: Collection[str] | None) -> list[sa.ColumnElement[bool]]:
    return [] if voices is None else [_of.voice_id.in_(list(map(storable, voices)))]
