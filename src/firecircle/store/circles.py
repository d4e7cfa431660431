"""Circles and panels in the database: add, label, find, load, delete."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection, RowMapping

from firecircle.circle.conclude import conclude
from firecircle.circle.events import Event
from firecircle.circle.ledger import record_from
from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError, StoreError
from firecircle.shapes import Shape
from firecircle.store.database import Database, shrink_file, storable
from firecircle.store.finding import (
    LISTED,
    CircleSummary,
    Filters,
    Hit,
    Order,
    Page,
    batch_query,
    circles_in_order,
    conditions,
    find_circles,
    hit_in,
    matching,
    still_sitting,
    summary_of,
    to_review,
)
from firecircle.store.rows import CircleOrPanel, Document, DocumentKind, parse_document, text_of
from firecircle.store.tables import circles, documents, events, texts
from firecircle.store.writing import add_finished
from firecircle.verdict import VERDICT_WORDS, VerdictWord

SHORTEST_PREFIX = 4
DOCUMENTS_AT_ONCE = 50
"""Circles in memory at once while all are read."""
AT_ONCE = 500
"""Circles deleted in one transaction, so that others can write in between."""


_ESTIMATE = sa.text("SELECT reltuples FROM pg_class WHERE oid = to_regclass('circles')")


@cache
def _events() -> TypeAdapter[Event]:
    return TypeAdapter(Event)


class CircleStore:
    """The circles of one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def add(self, judged: CircleOrPanel, *, label: str | None = None, run_id: str | None = None) -> str:
        """Save a finished circle or panel; returns its id, with a number added if it was taken."""
        with self.database.writing() as connection:
            return add_finished(connection, judged, label=label, run_id=run_id)

    def set_label(self, id_or_prefix: str, label: str | None) -> CircleSummary:
        """Set the true label of a circle's prompt, for calibration; None removes it."""
        with self.database.writing() as connection:
            summary = _resolve(connection, id_or_prefix)
            connection.execute(
                sa.update(circles).where(circles.c.pk == summary.pk).values(label=label and storable(label))
            )
            return summary.model_copy(update={"label": label})

    def review(self, circle_id: str, label: str | None, note: str | None, rater: str = "") -> CircleSummary:
        """As `set_label`, by a person who read the circle and left a note; None means not reviewed.

        Of several people the label that most gave counts; without such a one it is `unclear`.
        """
        with self.database.writing() as connection:
            mine = circles.c.pk == _resolve(connection, circle_id).pk
            locked = sa.select(*LISTED).where(mine).with_for_update()  # two people may say it at once
            summary = summary_of(connection.execute(locked).mappings().one())
            said = {**summary.said_by, rater: (label, note or "")}
            if label is None and note is None:
                del said[rater]
            changed = _reviewed(said)
            values = {name: value and storable(value) for name, value in changed.items()}
            connection.execute(sa.update(circles).where(mine).values(**values))
            return summary.model_copy(update=changed)

    def to_review(self) -> tuple[list[CircleSummary], dict[int, dict[str, float]]]:
        """The newest circles outside runs, and what each voice said in round 1."""
        with self.database.reading() as connection:
            return to_review(connection)

    def ask_to_cancel(self, id_or_prefix: str) -> CircleSummary:
        """Ask the process that runs this circle to cancel it."""
        with self.database.writing() as connection:
            summary = _resolve(connection, id_or_prefix)
            if summary.status != "sitting":
                raise ConfigError(summary.id, f"the circle is over already ({summary.status})")
            if summary.run_id is not None:  # a missing record would falsify the run
                raise ConfigError(
                    summary.id,
                    f"the circle belongs to the run {summary.run_id}",
                    "stop that run where it runs (Ctrl-C), the same command goes on later",
                )
            connection.execute(sa.update(circles).where(circles.c.pk == summary.pk).values(cancel_asked=True))
            return summary

    def find(self, filters: Filters | None = None, *, before: int | None = None, limit: int = 50) -> Page:
        """A page of circles, newest first."""
        with self.database.reading() as connection:
            return find_circles(connection, filters or Filters(), before=before, limit=limit)

    def hits(self, listed: Sequence[CircleSummary], searched: str) -> dict[str, Hit | None]:
        """Where each of these circles has the words: in its prompt, otherwise in a reply."""
        with self.database.reading() as connection:
            query = sa.select(texts.c.circle_pk, texts.c.prompt)
            rows = connection.execute(query.where(texts.c.circle_pk.in_([one.pk for one in listed])))
            prompts = {row.circle_pk: row.prompt for row in rows}
            return {
                one.id: hit_in("prompt", prompts.get(one.pk, ""), searched)
                or self._said(connection, one, searched)
                for one in listed
            }

    def _said(self, connection: Connection, circle: CircleSummary, searched: str) -> Hit | None:
        """The first voice that said the words; its document is read, not checked."""
        stored = _document(connection, circle.pk)
        try:
            document = json.loads(text_of(stored, circle.id)) if stored else {}
            for number, held in enumerate(document.get("dialogue_history") or [document], start=1):
                for said in held.get("evaluations", ()):
                    noted = (*said.get("patterns_observed", ()), *said.get("consensus_patterns", ()))
                    words = "\n".join((said["reasoning"], *(one["description"] for one in noted)))
                    if found := hit_in(f"{said['model']}, round {number}", words, searched):
                        return found
        except StoreError:
            pass  # its own page says that it is damaged
        return None

    def in_order(
        self,
        order: Order,
        filters: Filters | None = None,
        *,
        rising: bool = False,
        start: int = 0,
        limit: int = 50,
    ) -> tuple[CircleSummary, ...]:
        """Circles sorted by one of their figures, highest first, or lowest first with `rising`."""
        with self.database.reading() as connection:
            return circles_in_order(
                connection, filters or Filters(), order, rising=rising, start=start, limit=limit
            )

    def count(self, filters: Filters | None = None, *, most: int | None = None) -> int:
        """The number of matching circles. With `most`, counting stops there, which is cheap."""
        with self.database.reading() as connection:
            if most is None:
                query, _ = matching(connection, filters or Filters(), [sa.func.count()])
            else:
                some, _ = matching(connection, filters or Filters(), [circles.c.pk])
                query = sa.select(sa.func.count()).select_from(some.limit(most).subquery())
            return int(connection.execute(query).scalar_one())

    def about_how_many(self) -> int | None:
        """The number of circles from PostgreSQL's statistics; None if there are none.

        In SQLite, which counts its smallest index quickly, the exact number.
        """
        if self.database.is_sqlite:
            return self.count()
        with self.database.reading() as connection:
            guess = connection.execute(_ESTIMATE).scalar()
            return int(guess) if guess is not None and guess > 0 else None

    def neighbours(self, pk: int) -> tuple[str | None, str | None]:
        """The ids of the circles saved just after and just before this one."""
        with self.database.reading() as connection:
            newer, older = connection.execute(_NEIGHBOURS, {"pk": pk}).one()
            return newer, older

    def finished(self, ids: Sequence[str]) -> dict[str, float | None]:
        """Which of these ids have a finished circle, with its F if it has one."""
        query = sa.select(circles.c.id, circles.c.falsehood).where(
            circles.c.id.in_(ids), circles.c.status.not_in(("sitting", "cancelled"))
        )
        with self.database.reading() as connection:
            return {row.id: row.falsehood for row in connection.execute(query)}

    def summary(self, id_or_prefix: str) -> CircleSummary:
        """The circle with this id or unique id prefix."""
        with self.database.reading() as connection:
            return _resolve(connection, id_or_prefix)

    def load(self, circle: str | CircleSummary) -> CircleOrPanel:
        """Load a circle or panel; of one in progress or interrupted, everything said so far.

        `circle` is its id, a prefix of it, or its line of a list.
        """
        with self.database.reading() as connection:
            summary = _resolve(connection, circle) if isinstance(circle, str) else circle
            return load_circle(connection, summary)

    def each(self, filters: Filters | None = None) -> Iterator[tuple[CircleSummary, CircleOrPanel]]:
        """Every matching circle, newest first, a few in memory at a time."""
        for summary in self.each_summary(filters):
            with self.database.reading() as connection:
                yield summary, load_circle(connection, summary)

    def each_circle(
        self, filters: Filters | None = None
    ) -> Iterator[tuple[CircleSummary, FireCircleResult | None]]:
        """Every matching circle, without panels; None for one that cannot be read."""
        for summary in self.each_summary((filters or Filters()).model_copy(update={"mode": "fire_circle"})):
            try:
                judged = self.load(summary.id)
            except StoreError:
                yield summary, None
            else:
                yield summary, judged if isinstance(judged, FireCircleResult) else None

    def each_document(
        self, filters: Filters | None = None
    ) -> Iterator[tuple[CircleSummary, DocumentKind, str | StoreError]]:
        """The JSON of every matching circle except those in progress, oldest first, or why it is
        unreadable.
        """
        columns = (*LISTED, documents.c.kind, documents.c.schema_version, documents.c.body)
        last = -1
        while True:
            with self.database.reading() as connection:
                query, place = matching(connection, filters or Filters(), columns)
                query = query.outerjoin(documents, documents.c.circle_pk == circles.c.pk)
                query = query.where(place > last).order_by(place).limit(DOCUMENTS_AT_ONCE)
                rows = connection.execute(query).mappings().all()
                page = [(summary := summary_of(row), _text_in(connection, summary, row)) for row in rows]
            for summary, text in page:
                if text is not None:
                    yield summary, "circle" if summary.mode == "fire_circle" else "panel", text
            if len(page) < DOCUMENTS_AT_ONCE:
                return
            last = page[-1][0].pk

    def each_summary(self, filters: Filters | None = None) -> Iterator[CircleSummary]:
        """Every line of a list, page by page."""
        before: int | None = None
        while True:
            page = self.find(filters, before=before, limit=AT_ONCE)
            yield from page.circles
            if page.next_before is None:
                return
            before = page.next_before

    def document(self, id_or_prefix: str) -> tuple[CircleSummary, str]:
        """A circle's JSON, as saved or as far as it got."""
        with self.database.reading() as connection:
            summary = _resolve(connection, id_or_prefix)
            document = _document(connection, summary.pk)
            if document is not None:
                return summary, text_of(document, summary.id)
            return summary, load_circle(connection, summary).model_dump_json()

    def events_after(self, pk: int, seq: int = -1) -> list[tuple[int, Event]]:
        """The events of a circle in progress after this one; empty once it is closed."""
        query = (
            sa.select(events.c.seq, events.c.body)
            .where(events.c.circle_pk == pk, events.c.seq > seq)
            .order_by(events.c.seq)
        )
        with self.database.reading() as connection:
            return [(number, _events().validate_json(body)) for number, body in connection.execute(query)]

    def delete(self, id_or_prefix: str) -> CircleSummary:
        """Delete one circle and everything that belongs to it. Refuses one in progress."""
        with self.database.writing() as connection:
            summary = _resolve(connection, id_or_prefix)
            if summary.status == "sitting":
                first = "wait until it is over" if summary.run_id else "cancel it first"
                raise ConfigError(summary.id, "the circle is still running", first)
            connection.execute(sa.delete(circles).where(circles.c.pk == summary.pk))
            return summary

    def prune(self, filters: Filters) -> Iterator[int]:
        """Delete every matching circle except those in progress; yields the number after each step."""
        while True:
            with self.database.writing() as connection:
                over = sa.not_(still_sitting(connection))
                some = sa.select(circles.c.pk).where(*conditions(connection, filters), over).limit(AT_ONCE)
                # Do not wait for rows that another process is deleting or labelling.
                some = some.with_for_update(skip_locked=True)
                gone = connection.execute(sa.delete(circles).where(circles.c.pk.in_(some))).rowcount
            if not gone:
                break
            yield gone
        shrink_file(self.database)


_PK = sa.bindparam("pk", type_=circles.c.pk.type)
_NEIGHBOURS = sa.select(
    sa.select(circles.c.id).where(circles.c.pk > _PK).order_by(circles.c.pk).limit(1).scalar_subquery(),
    sa.select(circles.c.id)
    .where(circles.c.pk < _PK)
    .order_by(circles.c.pk.desc())
    .limit(1)
    .scalar_subquery(),
)


def _reviewed(said: dict[str, tuple[str | None, str]]) -> dict[str, str | None]:
    """What several people said of a circle, together."""
    labels = Counter(label for label, _ in said.values() if label).most_common(2)
    is_tie = len(labels) == 2 and labels[0][1] == labels[1][1]
    notes = [
        f"{rater}: {note}" if rater and len(said) > 1 else note for rater, (_, note) in said.items() if note
    ]
    return {
        "label": "unclear" if is_tie else labels[0][0] if labels else None,
        "note": "; ".join(notes) if said else None,
        "ratings": json.dumps(said) if said else None,
    }


def _resolve(connection: Connection, id_or_prefix: str) -> CircleSummary:
    query = sa.select(circles)
    row = connection.execute(query.where(circles.c.id == id_or_prefix)).mappings().first()
    if row is not None:
        return summary_of(row)
    if len(id_or_prefix) < SHORTEST_PREFIX:
        raise ConfigError(
            id_or_prefix or "ID", "no such circle", f"an id is given by at least {SHORTEST_PREFIX} characters"
        )
    alike = query.where(id_begins(id_or_prefix)).order_by(circles.c.id).limit(1)
    row = connection.execute(alike).mappings().first()
    if row is None:
        raise ConfigError(id_or_prefix, "no such circle", "`firecircle circles list` shows the saved circles")
    # A circle repeated with its seed has a number after the id, so this prefix is still unique.
    repeats = circles.c.id.startswith(f"{row['id']}-", autoescape=True)
    others = sa.select(circles.c.pk).where(
        id_begins(id_or_prefix), circles.c.id != row["id"], sa.not_(repeats)
    )
    if connection.execute(others.limit(1)).first() is not None:
        raise ConfigError(id_or_prefix, "several circles begin so", "give more of the id")
    return summary_of(row)


def _text_in(connection: Connection, summary: CircleSummary, row: RowMapping) -> str | StoreError | None:
    """The JSON of a listed circle; of an interrupted one, from its events."""
    if row["body"] is None and summary.status == "sitting":
        return None
    try:
        if row["body"] is not None:
            return text_of(Document(row["kind"], row["schema_version"], row["body"]), summary.id)
        return load_circle(connection, summary).model_dump_json()
    except StoreError as unreadable:
        return unreadable


def id_begins(prefix: str) -> sa.ColumnElement[bool]:
    """Circles with this id prefix, found by the index of ids."""
    of = circles.c.id
    return sa.and_(of >= prefix, of < f"{prefix}\U0010ffff", of.startswith(prefix, autoescape=True))


def _document(connection: Connection, pk: int) -> Document | None:
    query = sa.select(documents.c.kind, documents.c.schema_version, documents.c.body)
    row = connection.execute(query.where(documents.c.circle_pk == pk)).first()
    return Document(*row) if row is not None else None


def load_circle(connection: Connection, summary: CircleSummary) -> CircleOrPanel:
    """Load a circle or panel inside a transaction; without a document, from its events."""
    document = _document(connection, summary.pk)
    if document is not None:
        return parse_document(document, summary.id)
    query = sa.select(events.c.body).where(events.c.circle_pk == summary.pk).order_by(events.c.seq)
    heard = [_events().validate_json(body) for (body,) in connection.execute(query)]
    if not heard:
        raise StoreError(f"{summary.id}: nothing was written down but that the circle was convened")
    return conclude(record_from(heard))


MOST_IN_A_BATCH = 5_000
"""Most judgements read for one page."""


class BatchLine(Shape):
    """A batch and its outcome."""

    name: str
    verdicts: dict[VerdictWord, int]
    began: float


class Change(Shape):
    """One prompt of a batch, and the same prompt in another batch."""

    after: CircleSummary
    before: CircleSummary | None

    @property
    def turned(self) -> bool:
        """Whether the two verdicts differ."""
        return self.before is not None and self.before.verdict != self.after.verdict


def list_batches(database: Database) -> tuple[BatchLine, ...]:
    """The saved batches, newest first."""
    with database.reading() as connection:
        of = batch_query(connection).c
        colon = (
            sa.func.instr(of.record_id, ":")
            if connection.dialect.name == "sqlite"
            else sa.func.strpos(of.record_id, ":")
        )
        name = sa.func.substr(of.record_id, 1, colon - 1).label("batch")
        query = (
            sa.select(
                name,
                *(
                    sa.func.sum(sa.case((sa.func.coalesce(of.verdict, "no_verdict") == word, 1), else_=0))
                    for word in VERDICT_WORDS
                ),
                sa.func.min(of.started_at),
            )
            .where(of.record_id.like("%_:%"))
            .group_by("batch")
            .order_by(sa.func.max(of.pk).desc())
        )
        return tuple(
            BatchLine(
                name=str(batch),
                verdicts=dict(zip(VERDICT_WORDS, map(int, numbers), strict=True)),
                began=float(began),
            )
            for batch, *numbers, began in connection.execute(query)
        )


def judgements_of(store: CircleStore, name: str) -> dict[str, CircleSummary]:
    """The newest judgement of every prompt of a batch, by the prompt's id.

    Those without a verdict come first, then the others in the order of judging.
    """
    newest: dict[str, CircleSummary] = {}
    before = None
    while len(newest) < MOST_IN_A_BATCH:
        page = store.find(Filters(batch=name), before=before, limit=1000)
        for summary in page.circles:
            newest.setdefault((summary.record_id or "").removeprefix(f"{name}:"), summary)
        before = page.next_before
        if before is None:
            break
    oldest_first = reversed(newest.items())
    return dict(sorted(oldest_first, key=lambda one: one[1].verdict != "no_verdict"))


def pair_batches(store: CircleStore, name: str, other: str | None = None) -> dict[str, Change]:
    """The prompts of a batch, each with its judgement in another batch."""
    before = judgements_of(store, other) if other else {}
    return {
        record_id: Change(after=summary, before=before.get(record_id))
        for record_id, summary in judgements_of(store, name).items()
    }
