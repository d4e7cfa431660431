"""Circles and panels in the database: kept, told apart, found again, taken out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import count

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from firecircle.circle.chronicle import record_from
from firecircle.circle.conclude import conclude
from firecircle.circle.events import CircleConvened, Event
from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError, StoreError
from firecircle.store.database import Database
from firecircle.store.documents import Document, Kept, document_of, kept_in, text_of
from firecircle.store.finding import (
    CircleSummary,
    Filters,
    Page,
    conditions,
    find_circles,
    summary_of,
    this_process,
)
from firecircle.store.rows import Row, circle_row, detail_rows, storable, title_of
from firecircle.store.tables import circles, documents, events

SHORTEST_PREFIX = 4
AT_ONCE = 500
"""How many circles a long deletion takes out in one transaction: others may write in between."""

_event = TypeAdapter[Event](Event)


class CircleStore:
    """The circles of one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # -- keeping -----------------------------------------------------------------------------------

    def add(self, kept: Kept, *, label: str | None = None, run_id: str | None = None) -> str:
        """Keep a finished circle or panel. Its id, with a number behind it when that was taken."""
        with self.database.writing() as connection:
            return add_kept(connection, kept, label=label, run_id=run_id)

    def set_label(self, given: str, label: str | None) -> CircleSummary:
        """Say what a circle's prompt really was, for calibration; None takes the label away."""
        with self.database.writing() as connection:
            found = _resolve(connection, given)
            connection.execute(
                sa.update(circles).where(circles.c.pk == found.pk).values(label=label and storable(label))
            )
            return found.model_copy(update={"label": label})

    def ask_to_cancel(self, given: str) -> CircleSummary:
        """Ask the process that holds this circle to call it off."""
        with self.database.writing() as connection:
            found = _resolve(connection, given)
            if found.status != "sitting":
                raise ConfigError(f"{found.id}: the circle is over already ({found.status})")
            connection.execute(sa.update(circles).where(circles.c.pk == found.pk).values(cancel_asked=True))
            return found

    # -- finding -----------------------------------------------------------------------------------

    def find(self, filters: Filters | None = None, *, before: int | None = None, limit: int = 50) -> Page:
        """A page of circles, the newest first."""
        with self.database.reading() as connection:
            return find_circles(connection, filters or Filters(), before=before, limit=limit)

    def summary(self, given: str) -> CircleSummary:
        """The circle with this id, or with the only id that begins so."""
        with self.database.reading() as connection:
            return _resolve(connection, given)

    def load(self, given: str) -> Kept:
        """A circle or panel as it was; of one that still sits or was interrupted, all that was heard."""
        with self.database.reading() as connection:
            return _load(connection, _resolve(connection, given))

    def each(self, filters: Filters | None = None) -> Iterator[tuple[CircleSummary, Kept]]:
        """Every circle that matches, the newest first, a few in memory at a time."""
        for summary in self.each_summary(filters):
            with self.database.reading() as connection:
                yield summary, _load(connection, summary)

    def each_summary(self, filters: Filters | None = None) -> Iterator[CircleSummary]:
        """Every line of a list, page by page."""
        before: int | None = None
        while True:
            page = self.find(filters, before=before, limit=AT_ONCE)
            yield from page.circles
            if page.next_before is None:
                return
            before = page.next_before

    def document(self, given: str) -> tuple[CircleSummary, str]:
        """A circle's JSON, as it was kept or as far as it was heard."""
        with self.database.reading() as connection:
            summary = _resolve(connection, given)
            found = _document(connection, summary.pk)
            if found is not None:
                return summary, text_of(found)
            return summary, _load(connection, summary).model_dump_json()

    def events_after(self, pk: int, seq: int = -1) -> list[tuple[int, Event]]:
        """What a sitting circle has told after an event; empty once it is closed."""
        query = (
            sa.select(events.c.seq, events.c.body)
            .where(events.c.circle_pk == pk, events.c.seq > seq)
            .order_by(events.c.seq)
        )
        with self.database.reading() as connection:
            return [(number, _event.validate_json(body)) for number, body in connection.execute(query)]

    # -- taking out --------------------------------------------------------------------------------

    def delete(self, given: str) -> CircleSummary:
        """Take out one circle and everything that belongs to it."""
        with self.database.writing() as connection:
            found = _resolve(connection, given)
            connection.execute(sa.delete(circles).where(circles.c.pk == found.pk))
            return found

    def prune(self, filters: Filters) -> Iterator[int]:
        """Take out every circle that matches, some at a time; tells how many after each step.

        A circle that is still sitting stays.
        """
        while True:
            with self.database.writing() as connection:
                over = sa.or_(circles.c.status != "sitting", circles.c.heard_at < time.time() - 24 * 3600)
                some = sa.select(circles.c.pk).where(*conditions(connection, filters), over).limit(AT_ONCE)
                gone = connection.execute(sa.delete(circles).where(circles.c.pk.in_(some))).rowcount
            if not gone:
                return
            yield gone


def add_kept(
    connection: Connection, kept: Kept, *, label: str | None = None, run_id: str | None = None
) -> str:
    """Write a finished circle or panel inside a transaction."""
    wanted = kept.circle_id if isinstance(kept, FireCircleResult) else kept.panel_id
    row = {**circle_row(kept), "heard_at": time.time(), "label": label and storable(label), "run_id": run_id}
    pk, name = _insert(connection, wanted, row)
    _add_details(connection, pk, kept)
    return name


def open_circle(
    connection: Connection, told: CircleConvened, *, label: str | None, run_id: str | None
) -> tuple[int, str]:
    """Write down that a circle sits: its key and its id."""
    opening = told.record
    row: Row = {
        "mode": "fire_circle",
        "status": "sitting",
        "started_at": opening.started_at,
        "heard_at": time.time(),
        "held_by": this_process(),
        "label": label and storable(label),
        "run_id": run_id,
        "title": title_of(opening.prompt),
        "voices": "\n".join(opening.config.models),
    }
    return _insert(connection, opening.circle_id, row)


def add_events(connection: Connection, pk: int, told: Sequence[tuple[int, Event]]) -> None:
    """Write down what a sitting circle told, with the numbers of the events."""
    now = time.time()
    rows = [
        {"circle_pk": pk, "seq": seq, "at": now, "kind": event.kind, "body": event.model_dump_json()}
        for seq, event in told
    ]
    connection.execute(sa.insert(events), rows)


def close_circle(connection: Connection, pk: int, result: FireCircleResult) -> None:
    """Write the result of a circle that was open; its events are in the result now."""
    values = {**circle_row(result), "heard_at": time.time(), "cancel_asked": False}
    changed = connection.execute(sa.update(circles).where(circles.c.pk == pk).values(values)).rowcount
    if changed:  # else somebody has deleted it meanwhile, and so it shall be
        connection.execute(sa.delete(events).where(events.c.circle_pk == pk))
        _add_details(connection, pk, result)


def _insert(connection: Connection, wanted: str, row: Row) -> tuple[int, str]:
    """A circle repeated with its seed has the id of the first; the store numbers them."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    for number in count(1):
        name = wanted if number == 1 else f"{wanted}-{number}"
        statement = insert(circles).values(**row, id=name).on_conflict_do_nothing(index_elements=["id"])
        pk = connection.execute(statement.returning(circles.c.pk)).scalar()
        if pk is not None:
            return pk, name
    raise AssertionError("numbers do not end")


def _add_details(connection: Connection, pk: int, kept: Kept) -> None:
    document = document_of(kept)
    connection.execute(sa.insert(documents).values(circle_pk=pk, **document._asdict()))
    for table, rows in detail_rows(kept).items():
        if rows:
            connection.execute(sa.insert(table), [{"circle_pk": pk, **row} for row in rows])


def _resolve(connection: Connection, given: str) -> CircleSummary:
    query = sa.select(circles)
    row = connection.execute(query.where(circles.c.id == given)).mappings().first()
    if row is not None:
        return summary_of(row)
    if len(given) < SHORTEST_PREFIX:
        raise ConfigError(f"{given}: no such circle; an id is given by at least {SHORTEST_PREFIX} characters")
    alike = circles.c.id.startswith(given, autoescape=True)
    rows = connection.execute(query.where(alike).order_by(circles.c.pk.desc()).limit(2)).mappings().all()
    if not rows:
        raise ConfigError(f"{given}: no such circle; `firecircle circles list` shows what is kept")
    if len(rows) > 1:
        raise ConfigError(f"{given}: several circles begin so; give more of the id")
    return summary_of(rows[0])


def _document(connection: Connection, pk: int) -> Document | None:
    query = sa.select(documents.c.kind, documents.c.schema_version, documents.c.body)
    row = connection.execute(query.where(documents.c.circle_pk == pk)).first()
    return Document(*row) if row is not None else None


def _load(connection: Connection, summary: CircleSummary) -> Kept:
    document = _document(connection, summary.pk)
    if document is not None:
        return kept_in(document, summary.id)
    query = sa.select(events.c.body).where(events.c.circle_pk == summary.pk).order_by(events.c.seq)
    told = [_event.validate_json(body) for (body,) in connection.execute(query)]
    if not told:
        raise StoreError(f"{summary.id}: nothing was written down but that the circle was convened")
    return conclude(record_from(told))
