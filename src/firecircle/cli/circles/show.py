"""One kept circle or panel, told as `evaluate` tells one that was just judged."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.text import Text

from firecircle.circle.panel import Panel
from firecircle.cli.circles.listing import local_time
from firecircle.cli.evaluate.plan import Plan
from firecircle.cli.evaluate.request import Request
from firecircle.cli.output import Line, console_on, print_json, section
from firecircle.cli.printable import printable, printable_line
from firecircle.cli.report.report import circle_report, lost_report, panel_report, unfinished_report
from firecircle.cli.report.table import TableView
from firecircle.cli.report.transcript import transcript
from firecircle.metrics import metrics_of_circle, metrics_of_panel
from firecircle.names import EvaluationMode
from firecircle.store.documents import CircleOrPanel
from firecircle.store.finding import CircleSummary
from firecircle.telling.table import table_of_circle
from firecircle.telling.words import STOP_WORDS, counted


def show_kept(summary: CircleSummary, kept: CircleOrPanel, *, verbose: bool, as_json: bool) -> int:
    """Print the report, or the record as JSON; the exit status."""
    if as_json:
        print_json(kept.model_dump(mode="json"))
        return 0
    console = console_on(sys.stdout)
    for part in _told(console, summary, kept, verbose):
        # Only a terminal has a width that running text must keep to.
        console.print(part, soft_wrap=isinstance(part, str) and not console.is_terminal)
    return 0


def _told(
    console: Console, summary: CircleSummary, kept: CircleOrPanel, verbose: bool
) -> Iterator[RenderableType]:
    yield introduction(summary, kept)
    if verbose:
        for layer in kept.prompt.layers:
            yield from section("Prompt", [layer.name, Line(Text(printable(layer.text)), 1)])
        yield ""
    mode = EvaluationMode(summary.mode)
    request = Request(kept.prompt, Plan(mode, kept.config, chosen_by_user=True), verbose=verbose)
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
        yield from unfinished_report(console, request, kept)
    else:
        yield from circle_report(console, request, kept, metrics_of_circle(kept))


def introduction(summary: CircleSummary, kept: CircleOrPanel) -> str:
    """Which circle this is, and what it judged."""
    sizes = ", ".join(f"{layer.name} {len(layer.text):,}" for layer in kept.prompt.layers)
    turn = kept.circumstances.turn_number
    how = "still sitting" if summary.status == "sitting" else STOP_WORDS[summary.status]
    about = [
        summary.mode.replace("_", " "),
        counted(len(summary.voices), "voice"),
        how,
        f"label {printable_line(summary.label)}" if summary.label else "",
        f"run {printable_line(summary.run_id)}" if summary.run_id else "",
        f"arm {printable_line(summary.arm)}" if summary.arm else "",
        f"record {printable_line(summary.record_id)}" if summary.record_id else "",
    ]
    return (
        f"Kept as {printable_line(summary.id)}, begun {local_time(summary.started_at)}:"
        f" {'; '.join(part for part in about if part)}\n"
        f"Prompt: {sizes} characters; {f'turn {turn}' if turn else 'turn unknown'}\n"
    )
