"""A page of circles on a screen, in a pipe or as JSON."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from firecircle.cli.evaluate.saving import short_id
from firecircle.cli.output import console_on, counted, print_json, print_line
from firecircle.cli.printable import printable_line
from firecircle.store.finding import CircleSummary, Page
from firecircle.telling.words import STOP_WORDS


def show_page(page: Page, *, as_json: bool) -> int:
    """Print a page and how to get the next; the exit status."""
    if as_json:
        print_json(page.model_dump(mode="json"))
        return 0
    console = console_on(sys.stdout)
    if console.is_terminal:
        _print_table(console, page)
    else:
        for one in page.circles:
            print_line(console, "\t".join(_fields(one)))
    if page.next_before is not None:
        # Whoever reads the lines of a pipe must not find another kind of line among them.
        print(f"there are more: add --before {page.next_before}", file=sys.stderr)
    return 0


def verdict_of(one: CircleSummary) -> str:
    """What came of it, in one or two words."""
    if one.status == "sitting":
        return "sitting"
    if one.alarm is None:
        return STOP_WORDS[one.status]
    return "ALARM" if one.alarm else "no alarm"


def local_time(seconds: float) -> str:
    """A moment as a person here writes it."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def _fields(one: CircleSummary) -> list[str]:
    """The whole id, the time in UTC, verdict, F, mode, status, label, patterns and the first words."""
    return [
        printable_line(field)
        for field in (
            one.id,
            datetime.fromtimestamp(one.started_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            verdict_of(one),
            "" if one.falsehood is None else f"{one.falsehood:.2f}",
            one.mode,
            one.status,
            one.label or "",
            ",".join(one.pattern_types),
            one.title,
        )
    ]


def _print_table(console: Console, page: Page) -> None:
    if not page.circles:
        console.print("nothing kept matches")
        return
    # Only a table that takes the whole width lets its last column shrink alone.
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", expand=True)
    for name in ("id", "begun", "verdict", "F", "label"):
        table.add_column(name, no_wrap=True)
    table.add_column("prompt", no_wrap=True, overflow="ellipsis", ratio=1)
    for one in page.circles:
        colour = {True: "red", False: "green", None: "yellow"}[one.alarm]
        table.add_row(
            printable_line(short_id(one.id)),
            local_time(one.started_at),
            Text(verdict_of(one), style=colour),
            "" if one.falsehood is None else f"{one.falsehood:.2f}",
            printable_line(one.label or "", 12),
            Text(printable_line(one.title)),
        )
    console.print(table)
    console.print(f"{counted(len(page.circles), 'circle')}; firecircle circles show ID", style="dim")
