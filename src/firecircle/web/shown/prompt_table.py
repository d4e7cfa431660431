"""One table for lists and for the prompts of batches and runs: chips, order, pages, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, get_args
from urllib.parse import quote, urlencode

from pydantic import Field

from firecircle.names import CircleStatus
from firecircle.shapes import Shape
from firecircle.store.finding import CircleSummary
from firecircle.telling.safe_text import line_with_codes, without_formula
from firecircle.verdict import VerdictWord, mistake_of
from firecircle.web.problems import RequestError

ROWS = 50
Item = TypeVar("Item")
Value = str | float | None
Kind = Literal["alarm", "unsure", "no_alarm", "unread", "wrong", "different", "failed"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What the chips over a table show, beside all of it."""


class ListQuery(Shape):
    """Which rows of a table, in which order, and from where on."""

    order: str | int | None = None
    """By which column."""
    rising: bool = False
    start: int = Field(default=0, ge=0, le=10**9)
    format: Literal["html", "csv"] = "html"


class TableQuery(ListQuery):
    """Which prompts of a table, a row each."""

    show: Kind | None = None
    order: Literal["prompt", "label", "patterns"] | int | None = None
    """By the prompt's name, its label, its patterns, or the F of the column with this number, from 0."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one arm or batch made of a prompt."""

    verdict: VerdictWord
    status: CircleStatus
    falsehood: float | None
    threshold: float | None
    alarm: bool | None
    note: str = ""
    """Why there is no verdict."""
    href: str = ""
    number: int = 0
    """Which judgement it is, for those who link it."""


def entry_of(circle: CircleSummary) -> Entry:
    """A stored circle as an entry."""
    note = circle.status.replace("_", " ") if circle.verdict == "no_verdict" else ""
    href = f"/circles/{quote(circle.id, safe='')}"
    return Entry(
        circle.verdict, circle.status, circle.falsehood, circle.alarm_threshold, circle.alarm, note, href
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A prompt, and what each column made of it."""

    name: str
    label: str | None
    words: str
    pattern_types: tuple[str, ...]
    entries: tuple[Entry | None, ...]

    def counts_as(self, kind: Kind) -> bool:
        """Whether the row belongs under a chip."""
        words = [entry.verdict for entry in self.entries if entry]
        match kind:
            case "wrong":
                return any(mistake_of(word, self.label) for word in words)
            case "different":
                return len(set(words)) > 1
            case "failed":
                return "no_verdict" in words
            case _:
                return kind in words


def row_of(name: str, label: str | None, words: str, *judged: CircleSummary | None) -> Row:
    """A prompt with what circles made of it, the first of which names the patterns."""
    found = judged[0].pattern_types if judged and judged[0] else ()
    return Row(name, label, words, found, tuple(entry_of(one) if one else None for one in judged))


@dataclass(frozen=True, slots=True)
class Listing:
    """The addresses of a table: of another order, of other rows, of its next page."""

    given: dict[str, str]
    order: str | None
    rising: bool
    anchor: str = ""

    def link(self, **changes: object) -> str:
        """The query of this table with something changed; None takes it away, and a page begins anew."""
        left = {
            name: value for name, value in self.given.items() if name not in ("start", "before", "format")
        }
        changed = {**left, **{name: str(value) for name, value in changes.items() if value is not None}}
        for name, value in changes.items():
            if value is None:
                changed.pop(name, None)
        return urlencode(changed)

    def sorting(self, key: str, first: str = "descending") -> tuple[str, str]:
        """Where a heading leads, and how its column is sorted now, which is `first` at first; empty: not."""
        if self.order != key:
            return self.link(order=key, rising=None), ""
        if not self.rising:
            return self.link(order=key, rising="true"), first
        return self.link(order=None, rising=None), "descending" if first == "ascending" else "ascending"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListView(Listing, Generic[Item]):
    """The part of a table that a page shows, and the addresses of its other parts."""

    rows: tuple[Item, ...]
    matching: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView(ListView[Row]):
    """A row a prompt, a column an arm or a batch."""

    columns: tuple[str, ...]
    counts: dict[str, int]
    query: TableQuery


def list_view(
    rows: Sequence[Item],
    columns: Mapping[str, Callable[[Item], Value]],
    query: ListQuery,
    given: dict[str, str],
) -> ListView[Item] | str:
    """The rows that a query asks for, as a page of a list or whole as CSV; at first they stay in order."""
    if query.order is not None and query.order not in columns:
        raise RequestError(422, f"order: one of {', '.join(columns)}")
    order = str(query.order) if query.order is not None else None
    if order:
        names = isinstance(next(map(columns[order], rows), None), str)
        rows = _in_order(rows, columns[order], falling=names == query.rising)
    if query.format == "csv":
        return _csv(list(columns), ([value(row) for value in columns.values()] for row in rows))
    page = tuple(rows[query.start : query.start + ROWS])
    return ListView(given, order, query.rising, rows=page, matching=len(rows), start=query.start)


def table_view(
    columns: Sequence[str], rows: Sequence[Row], query: TableQuery, given: dict[str, str]
) -> TableView:
    """The rows that a query asks for; counts are of all rows."""
    chosen = [row for row in rows if query.show is None or row.counts_as(query.show)]
    if query.order is not None:
        chosen = _in_order(chosen, _key(query.order), falling=isinstance(query.order, int) != query.rising)
    shown = chosen if query.format == "csv" else chosen[query.start : query.start + ROWS]
    counts: dict[str, int] = {kind: sum(row.counts_as(kind) for row in rows) for kind in KINDS}
    counts["all"] = len(rows)
    return TableView(
        given,
        None if query.order is None else str(query.order),
        query.rising,
        "#table",
        columns=tuple(columns),
        rows=tuple(shown),
        matching=len(chosen),
        start=query.start,
        counts=counts,
        query=query,
    )


def _in_order(rows: Sequence[Item], key: Callable[[Item], Value], *, falling: bool) -> list[Item]:
    """Rows without the value come last, whichever way the others go."""
    present = [row for row in rows if key(row) is not None]
    present.sort(key=lambda row: key(row) or 0, reverse=falling)
    return present + [row for row in rows if key(row) is None]


def _key(order: str | int) -> Callable[[Row], str | float | None]:
    if order == "prompt":
        return lambda row: row.name
    if order == "label":
        return lambda row: row.label
    if order == "patterns":
        return lambda row: " ".join(row.pattern_types) or None

    def falsehood(row: Row) -> float | None:
        entry = row.entries[int(order)] if 0 <= int(order) < len(row.entries) else None
        return entry.falsehood if entry else None

    return falsehood


def csv_of(view: TableView) -> str:
    """What a table shows, all pages of it."""
    heads = [words for column in view.columns for words in (f"{column} verdict", f"{column} F")]
    told = (
        [
            row.name,
            row.label,
            *(
                value
                for one in row.entries
                for value in ((one.verdict, one.falsehood) if one else (None, None))
            ),
            " ".join(row.pattern_types),
            row.words,
        ]
        for row in view.rows
    )
    return _csv(["prompt", "label", *heads, "patterns", "words"], told)


def _csv(heads: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    """A file for a spreadsheet; no cell is a formula."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for row in (heads, *rows):
        writer.writerow([_cell(value) for value in row])
    return file.getvalue()


def _cell(value: Value) -> str:
    if isinstance(value, str):
        return without_formula(line_with_codes(value, None))
    return "" if value is None else f"{value:.15g}"
