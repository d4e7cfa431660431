"""Find circles: filters, lists and their order. A page costs the same in a large store."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field, ValidationError
from sqlalchemy.engine import Connection, RowMapping

from firecircle.errors import ConfigError
from firecircle.names import CircleStatus, ModeName
from firecircle.shapes import Declaration, Shape
from firecircle.store.database import storable
from firecircle.store.sitting import SILENT_AFTER, is_abandoned
from firecircle.store.tables import circles, evaluations, patterns, seats, texts
from firecircle.thresholds import TOLERANCE
from firecircle.verdict import COUNTED, VerdictWord, is_right

USUAL_PAGE, LARGEST_PAGE = 50, 1000


class Filters(Declaration):
    """Filters of a list of circles, such as `Filters(label="attack", alarm=False)`. All that are given must
    match.
    """

    since: float | None = None
    until: float | None = None
    """Times in seconds since 1970; `until` itself is excluded."""
    alarm: bool | None = None
    verdict: VerdictWord | None = None
    status: CircleStatus | None = None
    mode: ModeName | None = None
    pattern: str | None = None
    """The type of an agreed pattern with a quote."""
    voice: str | None = None
    label: str | None = None
    reviewed: bool | None = None
    """Whether a person reviewed it."""
    split: bool | None = None
    """Whether an active voice ended on the other side of the verdict."""
    run_id: str | None = None
    in_run: bool | None = None
    """Whether it belongs to any run of the lab."""
    batch: str | None = None
    outcome: Literal["right", "wrong", "missed", "false_alarm"] | None = None
    """How the verdict compares with the label: a missed attack and a false alarm are wrong. An unread prompt
    is neither right nor wrong.
    """
    least_falsehood: float | None = Field(default=None, ge=0, le=1)
    text: str | None = None
    """Words that all occur in the prompt or the replies; "several words" in quotes must occur together, and
    `begin*` matches every word that begins this way.
    """


class CircleSummary(Shape):
    """One line of a list of circles: its id, prompt, verdict and figures, without the dialogue.
    `store.circles.load` returns the whole circle.
    """

    pk: int
    id: str
    mode: str
    status: CircleStatus
    started_at: float
    duration_seconds: float | None
    label: str | None
    note: str | None = None
    """The reviewers' notes, which may be empty; None if it was not reviewed."""
    ratings: str | None = None
    """What each reviewer said, as JSON; see `said_by`."""
    run_id: str | None
    arm: str | None = None
    record_id: str | None = None
    """The judgement of the run, or the prompt of a batch."""
    title: str
    verdict: VerdictWord
    """`no_verdict` while it runs."""
    alarm: bool | None
    alarm_threshold: float | None = None
    """This circle's alarm threshold; None if its document cannot be read."""
    unread: bool | None = None
    """Whether no voice reads the prompt's language; None if unknown."""
    truth: float | None
    indeterminacy: float | None
    falsehood: float | None
    round1_falsehood: float | None
    decided_by: str | None
    decided_in_round: int | None
    voices: tuple[str, ...]
    pattern_types: tuple[str, ...]
    rounds: int
    failures: int
    partial: bool
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None

    @property
    def said_by(self) -> dict[str, tuple[str | None, str]]:
        """Label and note of each reviewer; one without a name is empty."""
        if self.ratings is None:
            return {} if self.note is None else {"": (self.label, self.note)}
        try:
            said = json.loads(self.ratings)
            return {str(rater): (label and str(label), str(note)) for rater, (label, note) in said.items()}
        except (ValueError, TypeError, AttributeError):  # of an edited file
            return {}

    @property
    def is_right(self) -> bool | None:
        """Whether the verdict agrees with the label; None if either is missing."""
        return is_right(self.verdict, self.label)


class Page(Shape):
    """Part of a list, newest first, and where the next part begins."""

    circles: tuple[CircleSummary, ...]
    next_before: int | None = None
    """Pass this as `before` for the next page; None at the end."""


def find_circles(
    connection: Connection, filters: Filters, *, before: int | None = None, limit: int = 50
) -> Page:
    """A page of circles, newest first."""
    if not 1 <= limit <= LARGEST_PAGE:
        raise ConfigError("limit", f"between 1 and {LARGEST_PAGE}, got {limit}")
    query, place = matching(connection, filters, LISTED)
    if before is not None:
        query = query.where(place < before)
    rows = connection.execute(query.order_by(place.desc()).limit(limit + 1)).mappings().all()
    shown = tuple(summary_of(row) for row in rows[:limit])
    return Page(circles=shown, next_before=shown[-1].pk if len(rows) > limit else None)


Order = Literal["falsehood", "talking", "cost", "rounds", "oldest", "verdict", "prompt", "patterns", "voices"]
"""What can sort a list: figures, the highest first, and words, from A."""
WORDS = frozenset(("verdict", "prompt", "patterns", "voices"))


def circles_in_order(
    connection: Connection,
    filters: Filters,
    order: Order,
    *,
    rising: bool = False,
    start: int = 0,
    limit: int = 50,
) -> tuple[CircleSummary, ...]:
    """Circles sorted by a figure or by words; those without come last. Reads all that match."""
    query, place = matching(connection, filters, LISTED)
    of = circles.c
    figure: sa.ColumnElement[Any] = {
        "falsehood": of.falsehood,
        "talking": of.falsehood - of.round1_falsehood,
        "cost": of.cost_usd,
        "rounds": of.rounds,
        "oldest": -place,
        "verdict": of.verdict,
        "prompt": sa.func.nullif(sa.func.lower(of.title), ""),
        "patterns": sa.func.nullif(of.pattern_types, ""),
        "voices": sa.func.nullif(of.voices, ""),
    }[order]
    # SQLite puts NULL last by itself, and only then uses the index of F.
    falling = figure.desc() if connection.dialect.name == "sqlite" else figure.desc().nulls_last()
    by_figure = figure.asc().nulls_last() if rising != (order in WORDS) else falling
    query = query.order_by(by_figure, place.desc()).offset(start).limit(limit)
    return tuple(summary_of(row) for row in connection.execute(query).mappings())


MOST_UNLABELLED, MOST_LABELLED = 500, 2_000
"""The newest circles considered for review, so that a large store costs no more."""


def to_review(connection: Connection) -> tuple[list[CircleSummary], dict[int, dict[str, float]]]:
    """The newest circles outside runs, with a label and without, and what each voice said in round 1."""
    query, place = matching(connection, Filters(in_run=False), LISTED)
    query = query.where(circles.c.verdict != "no_verdict").order_by(place.desc())
    listed = [
        summary_of(row)
        for part in (
            query.where(circles.c.label.is_(None)).limit(MOST_UNLABELLED),
            query.where(circles.c.label.is_not(None)).limit(MOST_LABELLED),
        )
        for row in connection.execute(part).mappings()
    ]
    said: dict[int, dict[str, float]] = {summary.pk: {} for summary in listed}
    columns = evaluations.c.circle_pk, evaluations.c.voice, evaluations.c.falsehood
    first = sa.select(*columns).where(evaluations.c.circle_pk.in_(said), evaluations.c.round_number == 1)
    for pk, voice, falsehood in connection.execute(first):
        said[pk][voice] = falsehood
    return listed, said


def matching(
    connection: Connection, filters: Filters, columns: Sequence[sa.ColumnElement[Any]]
) -> tuple[sa.Select[Any], sa.ColumnElement[int]]:
    """The matching circles as a query, and the column to sort by.

    The column belongs to the index that yields matches in list order, so a page stops as soon as it is full.
    """
    query = sa.select(*columns)
    if filters.text is not None and connection.dialect.name != "sqlite":
        rare = _rare_matches(connection, filters.text)
        if rare is not None:
            query = query.where(circles.c.pk == sa.any_(sa.literal(rare, sa.ARRAY(sa.BigInteger))))
            filters = filters.model_copy(update={"text": None})
    if filters.text is not None and connection.dialect.name == "sqlite":
        place: sa.ColumnElement[int] = _INDEX.c.rowid
        query = query.select_from(_INDEX.join(circles, circles.c.pk == place))
        query = query.where(_matches(filters.text))
        filters = filters.model_copy(update={"text": None})
    elif filters.pattern is not None:
        place = patterns.c.circle_pk
        query = query.select_from(patterns.join(circles, circles.c.pk == place))
        query = query.where(*_first_of_its_type(storable(filters.pattern)))
        filters = filters.model_copy(update={"pattern": None})
    elif filters.voice is not None:
        place = seats.c.circle_pk
        query = query.select_from(seats.join(circles, circles.c.pk == place))
        query = query.where(seats.c.voice == storable(filters.voice))
        filters = filters.model_copy(update={"voice": None})
    else:
        place = circles.c.pk
        query = query.select_from(circles)
    return query.where(*conditions(connection, filters)), place


def _first_of_its_type(pattern_type: str) -> list[sa.ColumnElement[bool]]:
    """The first grounded pattern of this type in a circle; several may be of one type."""
    other = patterns.alias("other_pattern")
    of = patterns.c
    first = sa.select(sa.func.min(other.c.seq)).where(
        other.c.circle_pk == of.circle_pk,
        other.c.pattern_type == pattern_type,
        other.c.grounded.is_(True),
    )
    return [of.pattern_type == pattern_type, of.grounded.is_(True), of.seq == first.scalar_subquery()]


def _ends_on_the_other_side() -> sa.ColumnElement[bool]:
    """Of an evaluation: an active voice stated it in the last round, against the verdict of its circle."""
    said, seat, of = evaluations.c, seats.c, circles.c
    alarms = said.falsehood >= of.alarm_threshold - TOLERANCE
    return sa.and_(
        said.circle_pk == of.pk,
        said.round_number == of.rounds,
        seat.circle_pk == of.pk,
        seat.voice == said.voice,
        seat.active.is_(True),
        alarms != of.alarm,
    )


def conditions(connection: Connection, filters: Filters) -> list[sa.ColumnElement[bool]]:
    """The filters as conditions on `circles`."""
    of = circles.c
    clauses: list[sa.ColumnElement[bool]] = []
    # Except for imports, later circles have greater keys: where the time ends, the list ends.
    if filters.since is not None:
        clauses.append(of.started_at >= filters.since)
        clauses.append(of.pk >= _bound(sa.func.min(_OTHER_KEY), _other.c.started_at >= filters.since))
    if filters.until is not None:
        clauses.append(of.started_at < filters.until)
        clauses.append(of.pk <= _bound(sa.func.max(_OTHER_KEY), _other.c.started_at < filters.until))
    if filters.alarm is not None:
        clauses.append(of.alarm.is_(filters.alarm))
    if filters.verdict is not None:
        word = of.verdict == filters.verdict
        clauses.append(sa.or_(word, of.verdict.is_(None)) if filters.verdict == "no_verdict" else word)
    if filters.in_run is not None:
        clauses.append(of.run_id.is_not(None) if filters.in_run else of.run_id.is_(None))
    if filters.reviewed is not None:
        clauses.append(of.note.is_not(None) if filters.reviewed else of.note.is_(None))
    if filters.split is not None:
        dissents = sa.exists().where(_ends_on_the_other_side())
        clauses.append(dissents if filters.split else ~dissents)
    if filters.batch is not None:
        begins = f"{storable(filters.batch)}:"
        clauses += [of.run_id.is_(None), of.record_id.startswith(begins, autoescape=True)]
        if connection.dialect.name == "sqlite":  # SQLite does not use its index for a prefix
            rows = batch_query(connection).c
            within = rows.record_id >= begins, rows.record_id < f"{begins}\U0010ffff"
            clauses.append(of.pk.in_(sa.select(rows.pk).where(*within)))
    if filters.status is not None:
        clauses.append(_has_status(connection, filters.status))
    if filters.outcome is not None:
        clauses.append(_has_outcome(connection, filters.outcome))
    if filters.least_falsehood is not None:
        clauses.append(of.falsehood >= filters.least_falsehood)
    if filters.label is not None:
        clauses.append(_has_label(connection, storable(filters.label)))
    clauses += [
        of[name] == value for name in ("mode", "run_id") if (value := getattr(filters, name)) is not None
    ]
    if filters.pattern is not None:
        grounded = sa.exists().where(patterns.c.circle_pk == of.pk, patterns.c.grounded.is_(True))
        clauses.append(grounded.where(patterns.c.pattern_type == storable(filters.pattern)))
    if filters.voice is not None:
        seat = sa.exists().where(seats.c.circle_pk == of.pk)
        clauses.append(seat.where(seats.c.voice == storable(filters.voice)))
    if filters.text is not None:
        clauses.append(_has_words(connection, filters.text))
    return clauses


def batch_query(connection: Connection) -> sa.Subquery:
    """Circles outside of runs with a record id: batches, and little else.

    SQLite does not know that these are few; without the named index it would read every circle.
    """
    of = circles.c
    columns = of.pk, of.record_id, of.verdict, of.started_at
    if connection.dialect.name == "sqlite":
        return _BATCHED_IN_SQLITE.columns(*columns).subquery("batched")
    return sa.select(*columns).where(of.run_id.is_(None), of.record_id.is_not(None)).subquery("batched")


_BATCHED_IN_SQLITE = sa.text(
    "SELECT pk, record_id, verdict, started_at FROM circles INDEXED BY circles_by_batch"
    " WHERE run_id IS NULL AND record_id IS NOT NULL"
)
_other = circles.alias("other")
# A sum is not a key, so SQLite uses the index of times instead of searching the table from that end.
_OTHER_KEY = _other.c.pk + 0


def _bound(key: sa.ColumnElement[Any], when: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
    return sa.select(key).where(when).scalar_subquery()


def _has_status(connection: Connection, status: CircleStatus) -> sa.ColumnElement[bool]:
    """The row of a circle whose process has ended still says sitting; it counts as interrupted."""
    if status == "sitting":
        return still_sitting(connection)
    if status == "interrupted":
        left = sa.and_(circles.c.status == "sitting", sa.not_(still_sitting(connection)))
        return sa.or_(circles.c.status == status, left)
    return circles.c.status == status


def _has_outcome(connection: Connection, outcome: str) -> sa.ColumnElement[bool]:
    attack, benign = _has_label(connection, "attack"), _has_label(connection, "benign")
    alarm = circles.c.alarm.is_(True)
    calm = sa.and_(circles.c.alarm.is_(False), circles.c.verdict.in_(COUNTED))
    missed, false_alarm = sa.and_(attack, calm), sa.and_(benign, alarm)
    return {
        "missed": missed,
        "false_alarm": false_alarm,
        "wrong": sa.or_(missed, false_alarm),
        "right": sa.or_(sa.and_(attack, alarm), sa.and_(benign, calm)),
    }[outcome]


def _has_label(connection: Connection, label: str) -> sa.ColumnElement[bool]:
    """This label, or a kind of it: `attack` also matches `attack:role_confusion`.

    The kinds are looked up first, because the index of labels finds a list of labels but not a prefix.
    """
    of = circles.c.label
    begins = f"{label}:"
    if connection.dialect.name == "sqlite":
        kinds = sa.select(of).where(of.startswith(begins, autoescape=True)).distinct()
        kinds = kinds.where(of >= begins, of < f"{begins}\U0010ffff")
        return of.in_([label, *connection.execute(kinds).scalars()])
    found = connection.execute(_KINDS, {"begins": begins, "end": f"{begins}\U0010ffff"}).scalars()
    return of.in_([label, *found])


# PostgreSQL reads every row for DISTINCT; this jumps from each kind to the next.
_KINDS = sa.text(
    """
    WITH RECURSIVE kinds(label) AS (
        (SELECT min(label COLLATE "C") FROM circles
         WHERE label COLLATE "C" >= :begins AND label COLLATE "C" < :end)
        UNION ALL
        SELECT (SELECT min(circles.label COLLATE "C") FROM circles
                WHERE circles.label COLLATE "C" > kinds.label AND circles.label COLLATE "C" < :end)
        FROM kinds WHERE kinds.label IS NOT NULL
    )
    SELECT label FROM kinds WHERE label IS NOT NULL
    """
)


def still_sitting(connection: Connection) -> sa.ColumnElement[bool]:
    """The circles that a process is running now."""
    of = circles.c
    lately = sa.and_(of.status == "sitting", of.heard_at >= time.time() - SILENT_AFTER)
    held = connection.execute(sa.select(of.pk, of.heard_at, of.held_by).where(lately))
    return sa.and_(lately, of.pk.not_in([pk for pk, heard, by in held if is_abandoned(heard, by)]))


_INDEX = sa.table("texts_index", sa.column("rowid", sa.Integer), sa.column("texts_index", sa.Text))


def _matches(text: str) -> sa.ColumnElement[bool]:
    query = " AND ".join(f'"{words}"{"*" if begins else ""}' for words, begins in _phrases_in(text))
    return _INDEX.c.texts_index.op("MATCH", is_comparison=True)(query)


def _has_words(connection: Connection, text: str) -> sa.ColumnElement[bool]:
    if connection.dialect.name == "sqlite":
        return circles.c.pk.in_(sa.select(_INDEX.c.rowid).where(_matches(text)))
    return sa.exists().where(texts.c.circle_pk == circles.c.pk, *_full_text_conditions(text))


def _full_text_conditions(text: str) -> list[sa.ColumnElement[bool]]:
    queries = [
        sa.func.to_tsquery("simple", " <-> ".join(words.split()) + ":*")
        if begins
        else sa.func.phraseto_tsquery("simple", words)
        for words, begins in _phrases_in(text)
    ]
    words_of: sa.ColumnClause[str] = sa.literal_column("texts.words")
    return [words_of.op("@@", is_comparison=True)(phrase) for phrase in queries]


def _rare_matches(connection: Connection, text: str) -> list[int] | None:
    """The keys of the circles with these words if PostgreSQL expects few, None if many.

    Its index does not yield matches in list order. Either all m matches are fetched, or the list is walked
    and about n / m of its n texts are read for each line. The planner counts reading a text as free, walks,
    and reads all of them when a word occurs nowhere.
    """
    query = sa.select(texts.c.circle_pk).where(*_full_text_conditions(text))
    written = query.compile(connection, compile_kwargs={"render_postcompile": True})
    plan = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {written}", written.params).scalar_one()
    newest = connection.execute(sa.select(sa.func.max(circles.c.pk))).scalar() or 0
    few = math.sqrt(USUAL_PAGE * newest)
    if plan[0]["Plan"]["Plan Rows"] > few:
        return None
    most = int(few * 4)  # the estimate may be wrong
    keys = list(connection.execute(query.limit(most + 1)).scalars())
    return keys if len(keys) <= most else None


class Hit(Shape):
    """Where the words that were searched for are, and the text around them."""

    where: str
    """The prompt, or a voice and its round."""
    before: str
    marked: str
    after: str


AROUND = 50
"""Characters that are shown on either side of a hit."""


def hit_in(where: str, text: str, searched: str) -> Hit | None:
    """The first place of a text with one of the words."""
    found = _any_word_of(searched).search(text)
    if found is None:
        return None
    start, end = max(0, found.start() - AROUND), found.end() + AROUND
    before = ("…" if start else "") + text[start : found.start()]
    after = text[found.end() : end] + ("…" if end < len(text) else "")
    return Hit(where=where, before=before, marked=found[0][:AROUND], after=after)


@lru_cache(maxsize=16)
def _any_word_of(searched: str) -> re.Pattern[str]:
    """What finds one of the words or phrases of a query."""
    words = (
        r"\b" + r"\W+".join(map(re.escape, phrase.split())) + (r"\w*" if begins else r"\b")
        for phrase, begins in _phrases_in(searched)
    )
    return re.compile("|".join(words), re.IGNORECASE)


def _phrases_in(text: str) -> list[tuple[str, bool]]:
    """The words and phrases of a query, without its syntax, and whether each is a prefix (`confid*`)."""
    parts = [phrase or word for phrase, word in re.findall(r'"([^"]+)"|(\S+)', text)]
    phrases = [(" ".join(re.findall(r"\w+", part)), part.endswith("*")) for part in parts]
    if not any(words for words, _ in phrases):
        raise ConfigError("text", "needs a word to search for")
    return [(words, begins) for words, begins in phrases if words]


LISTED = tuple(circles.c[name] for name in (*CircleSummary.model_fields, "heard_at", "held_by"))


def summary_of(row: RowMapping) -> CircleSummary:
    """A row of `circles` as a line of a list."""
    values = {name: row[name] for name in CircleSummary.model_fields}
    values["verdict"] = values["verdict"] or "no_verdict"
    for name in ("voices", "pattern_types"):
        values[name] = tuple(str(row[name]).split("\n")) if row[name] else ()
    if row["status"] == "sitting" and is_abandoned(row["heard_at"], row["held_by"]):
        values["status"] = "interrupted"
    try:
        return CircleSummary(**values)
    except ValidationError as damaged:
        return _summary_of_damaged(values, damaged)


_UNREADABLE = {
    "id": "?",
    "mode": "?",
    "status": "interrupted",
    "verdict": "no_verdict",
    "started_at": 0.0,
    "rounds": 0,
    "failures": 0,
    "partial": True,
}
"""Replacements in a list for unreadable fields; others are None."""


def _summary_of_damaged(values: dict[str, Any], damaged: ValidationError) -> CircleSummary:
    """A row with unreadable fields, which are named: one row never breaks a list."""
    fields = dict.fromkeys(str(complaint["loc"][0]) for complaint in damaged.errors(include_url=False))
    readable = {**values, **{name: _UNREADABLE.get(name) for name in fields}}
    title = "" if "title" in fields else values["title"]
    return CircleSummary(**{**readable, "title": f"(damaged: {', '.join(fields)}) {title}".rstrip()})
