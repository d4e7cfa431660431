"""Kept circles on a screen, in a pipe or as JSON: a page of them, or one as `evaluate` shows it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from firecircle.circle.deliberation import Dissent
from firecircle.circle.panel import Panel
from firecircle.cli.evaluate.request import Request
from firecircle.cli.output import (
    VERDICT_STYLES,
    Line,
    console_on,
    print_all,
    print_json,
    print_line,
    section,
    short_id,
)
from firecircle.cli.printable import printable, printable_line
from firecircle.cli.report.report import (
    circle_report,
    lost_report,
    panel_report,
    transcript,
    unfinished_report,
)
from firecircle.cli.report.table import TableView
from firecircle.metrics import metrics_of_circle, metrics_of_panel
from firecircle.store.finding import CircleSummary, Page
from firecircle.store.rows import CircleOrPanel
from firecircle.telling.table import table_of_circle
from firecircle.telling.words import STOP_WORDS, counted, time_text
from firecircle.thresholds import format_figure
from firecircle.verdict import SHOWN

LONGEST_REASON = 240
NO_DISSENT: Mapping[str, Sequence[Dissent]] = {}

# -- a page of circles -----------------------------------------------------------------------------------


def show_page(page: Page, dissent: Mapping[str, Sequence[Dissent]] = NO_DISSENT, *, as_json: bool) -> int:
    """Print a page and how to get the next, with who ended against which verdict; the exit status."""
    if as_json:
        against = {of: [each.model_dump(mode="json") for each in voices] for of, voices in dissent.items()}
        print_json({**page.model_dump(mode="json"), **({"dissent": against} if against else {})})
        return 0
    console = console_on(sys.stdout)
    if console.is_terminal:
        _print_table(console, page)
    else:
        for summary in page.circles:
            print_line(console, "\t".join(_fields(summary)))
    for summary in page.circles:
        for each in dissent.get(summary.id, ()):
            words = printable_line(
                f"{each.model} ends at F {each.falsehood:.2f}: {each.reason}", LONGEST_REASON
            )
            print_line(console, f"{printable_line(short_id(summary.id))}\t{words}")
    if page.next_before is not None:
        # Whoever reads the lines of a pipe must not find another kind of line among them.
        print(f"there are more: add --before {page.next_before}", file=sys.stderr)
    return 0


def _print_table(console: Console, page: Page) -> None:
    if not page.circles:
        console.print("no saved circle matches")
        return
    # Only a table that takes the whole width lets its last column shrink alone.
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", expand=True)
    for name in ("id", "begun", "verdict", "F", "label"):
        table.add_column(name, no_wrap=True)
    table.add_column("prompt", no_wrap=True, overflow="ellipsis", ratio=1)
    for summary in page.circles:
        table.add_row(
            printable_line(short_id(summary.id)),
            _local_time(summary.started_at),
            Text(_verdict(summary), style=VERDICT_STYLES[summary.verdict]),
            _figure(summary),
            printable_line(summary.label or "", 12),
            Text(printable_line(summary.title)),
        )
    console.print(table)
    console.print(f"{counted(len(page.circles), 'circle')}; firecircle circles show ID", style="dim")


def _fields(summary: CircleSummary) -> list[str]:
    """The whole id, the time in UTC, verdict, F, mode, status, label, patterns and the first words."""
    return [
        printable_line(field)
        for field in (
            summary.id,
            time_text(summary.started_at, "%Y-%m-%dT%H:%M:%SZ", UTC),
            _verdict(summary),
            _figure(summary),
            summary.mode,
            summary.status,
            summary.label or "",
            ",".join(summary.pattern_types),
            summary.title,
        )
    ]


def _verdict(summary: CircleSummary) -> str:
    """What came of it, in one or two words."""
    return "sitting" if summary.status == "sitting" else SHOWN[summary.verdict]


def _figure(summary: CircleSummary) -> str:
    if summary.falsehood is None:
        return ""
    return format_figure(summary.falsehood, summary.alarm_threshold or 1.0)


def _local_time(seconds: float) -> str:
    """A moment as a person here writes it."""
    return time_text(seconds, "%Y-%m-%d %H:%M")


# -- one circle ------------------------------------------------------------------------------------------


def show_circle(summary: CircleSummary, kept: CircleOrPanel, *, verbose: bool, as_json: bool) -> int:
    """Print the report, or the record as JSON; the exit status."""
    if as_json:
        print_json(kept.model_dump(mode="json"))
    else:
        console = console_on(sys.stdout)
        print_all(console, _report(console, summary, kept, verbose))
    return 0


def _report(
    console: Console, summary: CircleSummary, kept: CircleOrPanel, verbose: bool
) -> Iterator[RenderableType]:
    yield _introduction(summary, kept)
    if verbose:
        for layer in kept.prompt.layers:
            yield from section("Prompt", [layer.name, Line(Text(printable(layer.text)), 1)])
        yield ""
    request = Request(kept.prompt, kept.config, label=summary.label, verbose=verbose)
    if isinstance(kept, Panel):
        if kept.evaluations:
            yield from panel_report(console, request, metrics_of_panel(kept))
        else:
            yield from lost_report(kept.failures)
        return
    yield TableView(table_of_circle(kept))
    if summary.status == "sitting":
        yield from transcript(kept) if verbose else ()
    elif kept.consensus is None:
        yield from unfinished_report(console, request, kept, reason=kept.abort_reason)
    else:
        yield from circle_report(console, request, kept, metrics_of_circle(kept))


def _introduction(summary: CircleSummary, kept: CircleOrPanel) -> str:
    """Which circle this is, and what it judged."""
    sizes = ", ".join(f"{layer.name} {len(layer.text):,}" for layer in kept.prompt.layers)
    turn, seating = kept.circumstances.turn_number, kept.circumstances.seating
    how = "still sitting" if summary.status == "sitting" else STOP_WORDS[summary.status]
    about = [
        summary.mode.replace("_", " "),
        printable_line(str(seating)) if seating else counted(len(summary.voices), "voice"),
        how,
        f"label {printable_line(summary.label)}" if summary.label else "",
        f"run {printable_line(summary.run_id)}" if summary.run_id else "",
        f"arm {printable_line(summary.arm)}" if summary.arm else "",
        f"record {printable_line(summary.record_id)}" if summary.record_id else "",
    ]
    return (
        f"Saved as {printable_line(summary.id)}, begun {_local_time(summary.started_at)}:"
        f" {'; '.join(part for part in about if part)}\n"
        f"Prompt: {sizes} characters; {f'turn {turn}' if turn else 'turn unknown'}\n"
    )
