"""Write circles and panels inside a transaction: open, extend and close them, or all at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import count

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from firecircle.circle.events import CircleConvened, Event
from firecircle.circle.result import FireCircleResult
from firecircle.store.database import insert_unless_there, storable
from firecircle.store.rows import CircleOrPanel, Row, circle_row, detail_rows, document_of, title_of
from firecircle.store.sitting import InBatch, InRun, this_process
from firecircle.store.tables import circles, documents, events


def add_finished(
    connection: Connection,
    judged: CircleOrPanel,
    *,
    label: str | None = None,
    run_id: str | None = None,
    arm: str | None = None,
    record_id: str | None = None,
    note: str | None = None,
    ratings: str | None = None,
) -> str:
    """Write a finished circle or panel inside a transaction; an existing id gets a number."""
    place: Row = {"run_id": run_id, "arm": arm, "record_id": record_id, "note": note, "ratings": ratings}
    row = {**_row_of(judged, label), **place}
    pk, name = _insert(connection, own_id(judged), row)
    _add_details(connection, pk, judged)
    return name


def add_unopened(
    connection: Connection, judged: CircleOrPanel, *, label: str | None, place: InRun | InBatch | None
) -> str:
    """Write a circle or panel that was over before it was opened."""
    pk, name = _insert_or_replace(connection, own_id(judged), _row_of(judged, label), place)
    _add_details(connection, pk, judged)
    return name


def own_id(judged: CircleOrPanel) -> str:
    """The id of a circle or panel before the store adds a number."""
    return judged.circle_id if isinstance(judged, FireCircleResult) else judged.panel_id


def _row_of(judged: CircleOrPanel, label: str | None) -> Row:
    return {**circle_row(judged), "heard_at": time.time(), "label": label and storable(label)}


def open_circle(
    connection: Connection, event: CircleConvened, *, label: str | None, place: InRun | InBatch | None
) -> tuple[int, str]:
    """Write that a circle is running; returns its key and id."""
    opening = event.record
    row: Row = {
        "mode": "fire_circle",
        "status": "sitting",
        "started_at": opening.started_at,
        "heard_at": time.time(),
        "held_by": this_process(),
        "label": label and storable(label),
        "title": title_of(opening.prompt),
        "voices": "\n".join(opening.config.models),
    }
    return _insert_or_replace(connection, opening.circle_id, row, place)


def add_events(connection: Connection, pk: int, numbered: Sequence[tuple[int, Event]]) -> None:
    """Write the events of a running circle, with their numbers."""
    now = time.time()
    rows = [
        {"circle_pk": pk, "seq": seq, "at": now, "kind": event.kind, "body": event.model_dump_json()}
        for seq, event in numbered
    ]
    connection.execute(sa.insert(events), rows)


def is_stored(connection: Connection, pk: int, name: str) -> bool:
    """Whether an opened circle is still stored: its key may have been reused for another circle."""
    mine = sa.and_(circles.c.pk == pk, circles.c.id == name)
    return connection.execute(sa.select(circles.c.pk).where(mine)).first() is not None


def heartbeat(connection: Connection, sitting: Sequence[tuple[int, str]]) -> list[int]:
    """Write that these circles, by key and id, are still running; returns those to cancel."""
    mine = sa.tuple_(circles.c.pk, circles.c.id).in_(sitting)
    connection.execute(sa.update(circles).where(mine).values(heard_at=time.time()))
    return list(connection.execute(sa.select(circles.c.pk).where(mine, circles.c.cancel_asked)).scalars())


def close_circle(connection: Connection, pk: int, result: FireCircleResult) -> None:
    """Write the result of an open circle; its events are in the result now."""
    values = {**circle_row(result), "heard_at": time.time(), "cancel_asked": False}
    connection.execute(sa.update(circles).where(circles.c.pk == pk).values(values))
    connection.execute(sa.delete(events).where(events.c.circle_pk == pk))
    _add_details(connection, pk, result)


def _insert_or_replace(
    connection: Connection, circle_id: str, row: Row, place: InRun | InBatch | None
) -> tuple[int, str]:
    """A judgement of a run or batch has one circle: a repeated judgement, after an interruption or failure,
    replaces the earlier one. A label added meanwhile stays.
    """
    if isinstance(place, InRun):
        row = {**row, **{name: storable(value) for name, value in asdict(place).items()}}
        same = sa.and_(circles.c.id == circle_id, circles.c.run_id == row["run_id"])
    elif place is not None:
        row = {**row, "record_id": storable(place.record_id)}
        # Not by its id, which follows from the settings: an earlier batch with the same seed has it too.
        own = sa.and_(circles.c.record_id == row["record_id"], circles.c.run_id.is_(None))
        same = sa.false() if place.began is None else sa.and_(own, circles.c.started_at >= place.began)
    else:
        return _insert(connection, circle_id, row)
    earlier = connection.execute(sa.select(circles.c.pk, circles.c.label).where(same)).mappings().first()
    if earlier is not None:
        connection.execute(sa.delete(circles).where(circles.c.pk == earlier["pk"]))
        row |= earlier
    return _insert(connection, circle_id, row)


def _insert(connection: Connection, circle_id: str, row: Row) -> tuple[int, str]:
    """A circle repeated with its seed has the id of the first; the store numbers them."""
    statement = insert_unless_there(connection.dialect.name, circles).returning(circles.c.pk)
    for number in count(1):
        name = circle_id if number == 1 else f"{circle_id}-{number}"
        pk = connection.execute(statement, {**row, "id": name}).scalar()
        if pk is not None:
            return pk, name
    raise AssertionError("numbers do not end")


def _add_details(connection: Connection, pk: int, judged: CircleOrPanel) -> None:
    document = document_of(judged)
    connection.execute(sa.insert(documents), {"circle_pk": pk, **document._asdict()})
    for table, rows in detail_rows(judged).items():
        if rows:
            connection.execute(sa.insert(table), [{"circle_pk": pk, **row} for row in rows])
