"""`firecircle circles`: what was kept, found again, shown, labelled, carried to another store, taken out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from firecircle.circle.measures import Dissent, deliberation
from firecircle.circle.panel import Panel
from firecircle.circle.result import FireCircleResult
from firecircle.cli.evaluate.request import Request
from firecircle.cli.live_table import TableView
from firecircle.cli.options import (
    AsJson,
    ExportFile,
    FilterOptions,
    Force,
    MostListed,
    StoreOption,
    Where,
    Yes,
    readable,
    refuse_json_beside_export,
    refuse_to_replace,
    with_options,
    written_whole,
)
from firecircle.cli.output import (
    VERDICT_STYLES,
    Line,
    console_on,
    is_confirmed,
    print_all,
    print_json,
    print_line,
    print_outcome,
    print_written,
    progress,
    section,
    short_id,
    with_progress,
)
from firecircle.cli.report import (
    circle_report,
    lost_report,
    panel_report,
    transcript,
    unfinished_report,
)
from firecircle.cli.trouble import MOST_COMPLAINTS, TROUBLE, complain
from firecircle.errors import ConfigError, StoreError, install_command
from firecircle.metrics import metrics_of_circle, metrics_of_panel
from firecircle.store.finding import CircleSummary, Filters, Page
from firecircle.store.opening import open_store
from firecircle.store.rows import CircleOrPanel
from firecircle.store.transfer import (
    HEADER,
    BadLine,
    ImportProgress,
    dataset_lines,
    export_lines,
    import_circles,
)
from firecircle.telling.safe_text import printable, printable_line
from firecircle.telling.table import table_of_circle
from firecircle.telling.words import STOP_WORDS, counted, time_text
from firecircle.thresholds import format_figure
from firecircle.verdict import SHOWN

if TYPE_CHECKING:
    from firecircle.store.opening import Store

CircleId = Annotated[str, typer.Argument(metavar="ID", help="The circle; the beginning of its id will do.")]

NOTHING_DELETED = "nothing was deleted"


@with_options(FilterOptions)
def list_circles(
    *,
    given: FilterOptions,
    where: Where = None,
    split: Annotated[
        bool, typer.Option("--split", help="In which a voice ended against the verdict, and why it did.")
    ] = False,
    limit: MostListed = 50,
    before: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Go on where a list ended: what it said to add.")
    ] = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """List saved circles, the newest first. Several filters narrow the list.

    \b
    firecircle circles list --alarm --since 7d
    firecircle circles list --text '"as we agreed" invoice' --pattern temporal_inconsistency
    """
    given = given.narrowed(where)
    filters = given.filters(store).model_copy(update={"split": True if split else None})
    with open_store(store) as opened:
        page = opened.circles.find(filters, before=before, limit=limit)
        dissent = {summary.id: _dissent(opened, summary.id) for summary in page.circles} if split else {}
        of_run = filters.run_id is not None and not opened.circles.count(
            Filters(run_id=filters.run_id), most=1
        )
    if of_run and not as_json:
        name, run = printable_line(filters.run_id or ""), printable_line(given.run or "")
        print(
            f"no circle of {name} is in the store: those of embedded voices are written down only when asked"
            f" for: firecircle lab run {run} --save",
            file=sys.stderr,
        )
    return show_page(page, dissent, as_json=as_json)


def _dissent(store: Store, circle_id: str) -> tuple[Dissent, ...]:
    judged = store.circles.load(circle_id)
    return deliberation(judged).dissent if isinstance(judged, FireCircleResult) else ()


def show(
    circle: CircleId,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print the prompt and what every voice said in every round.")
    ] = False,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record as JSON.")] = False,
) -> int:
    """Show one circle as `evaluate` printed it; of one that was interrupted, all that was heard."""
    with open_store(store) as opened:
        summary = opened.circles.summary(circle)
        kept = opened.circles.load(summary.id)
    return show_circle(summary, kept, verbose=verbose, as_json=as_json)


def delete(
    circles: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID...", help="The circles; the beginnings of their ids will do."),
    ] = None,
    where: Where = None,
    everything: Annotated[bool, typer.Option("--all", help="Every circle there is.")] = False,
    yes: Yes = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Delete circles with everything that belongs to them: by their ids, or all that match.

    Those that still sit stay, unless their ids are given.

    \b
    firecircle circles delete --where until=90d
    firecircle circles delete --where label=benign --where alarm=no --yes
    """
    if sum((bool(circles), bool(where), everything)) != 1:
        raise ConfigError("--all", "say which circles: ids, --where until=90d, or --all for every one")
    if circles:
        return _delete_named(circles, store, yes=yes, as_json=as_json)
    return _delete_matching(FilterOptions().narrowed(where), store, yes=yes, as_json=as_json)


def _delete_named(circles: list[str], store: str | None, *, yes: bool, as_json: bool) -> int:
    with open_store(store) as opened:
        ids = list(dict.fromkeys(opened.circles.summary(circle).id for circle in circles))
        count = counted(len(ids), "circle")
        if not is_confirmed(f"Delete {count} ({', '.join(ids)})?", yes=yes, otherwise=NOTHING_DELETED):
            return print_outcome(NOTHING_DELETED, {"deleted": []}, as_json=as_json)
        for circle_id in ids:
            opened.circles.delete(circle_id)
    return print_outcome(f"{count} deleted", {"deleted": ids}, as_json=as_json)


def _delete_matching(given: FilterOptions, store: str | None, *, yes: bool, as_json: bool) -> int:
    """Delete what matches, some at a time."""
    filters = given.filters(store)
    with open_store(store) as opened:
        matching = opened.circles.count(filters)
        if not matching:
            return print_outcome("no saved circle matches", {"deleted": 0}, as_json=as_json)
        question = f"Delete {counted(matching, 'circle')} from {opened.name}?"
        if not is_confirmed(question, yes=yes, otherwise=NOTHING_DELETED):
            return print_outcome(NOTHING_DELETED, {"deleted": 0}, as_json=as_json)
        deleted = 0
        with progress("deleting circle", matching) as show_progress:
            for batch in opened.circles.prune(filters):
                deleted += batch
                show_progress(deleted)
    return print_outcome(f"{counted(deleted, 'circle')} deleted", {"deleted": deleted}, as_json=as_json)


def label_circle(
    circle: CircleId,
    label: Annotated[
        str | None, typer.Argument(metavar="LABEL", help="What the prompt really is, such as attack.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Take the label away.")] = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Set the true label of a circle's prompt; calibration and reports go by it."""
    if (label is None) != none:
        raise ConfigError("LABEL", "give one, or --none to remove it")
    if label is not None and not label.strip():
        raise ConfigError("LABEL", "is empty", "--none removes a label")
    with open_store(store) as opened:
        changed = opened.circles.set_label(circle, label)
    change = "has no label now" if label is None else f"has the label {label}"
    return print_outcome(f"{changed.id} {change}", {"id": changed.id, "label": label}, as_json=as_json)


def cancel(circle: CircleId, store: StoreOption = None, as_json: AsJson = False) -> int:
    """Ask the process that runs a circle to stop it; what was said is saved."""
    with open_store(store) as opened:
        asked = opened.circles.ask_to_cancel(circle)
    document = {"id": asked.id, "cancel_asked": True}
    return print_outcome(f"{asked.id} is asked to end", document, as_json=as_json)


def export_to(
    file: ExportFile = "-",
    where: Where = None,
    force: Force = False,
    html: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Write this one circle instead, as a page that works from disk."),
    ] = None,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print how many were written, as JSON.")] = False,
) -> int:
    """Write every circle that matches as JSON lines, the oldest first. One that still sits is left out.

    With --where reviewed=yes it writes a dataset: the prompts that a person labelled in the viewer, with
    label, note and the verdict they got; outcome=wrong leaves those that disagree with the verdict.

    A circle that cannot be read is named, the others are written, and the exit status is 2.
    """
    refuse_json_beside_export(file, as_json=as_json)
    refuse_to_replace(file, force=force)
    filters = FilterOptions().narrowed(where).filters(store)
    if html is not None:
        if filters != Filters():
            raise ConfigError("--html", "it names one circle already", "leave the filters out")
        return _write_page(html, file, store, as_json=as_json)
    circles, unreadable = 0, list[StoreError]()
    with open_store(store) as opened, written_whole(file) as target:
        write = dataset_lines if filters.reviewed else export_lines
        for line in with_progress(write(opened.circles, filters, unreadable.append), "writing circle"):
            target.write(line + "\n")
            circles += line != HEADER
    document = {"circles": circles, "unreadable": [str(why) for why in unreadable]}
    print_written(counted(circles, "circle"), file, document, as_json=as_json)
    for why in unreadable[:MOST_COMPLAINTS]:
        complain(str(why))
    if more := unreadable[MOST_COMPLAINTS:]:
        complain(f"and {counted(len(more), 'more circle')} that cannot be read")
    return TROUBLE if unreadable else 0


def _write_page(circle: str, file: str, store: str | None, *, as_json: bool) -> int:
    """Write the page of a circle or panel; the beginning of its id will do."""
    try:
        from firecircle.web.rendering import exported_html, templates
    except ModuleNotFoundError as missing:
        raise ConfigError("--html", f"{missing.name} is not installed", install_command("view")) from None
    with open_store(store) as opened:
        summary = opened.circles.summary(circle)
        page = exported_html(templates(), summary, opened.circles.load(summary.id))
    with written_whole(file) as target:
        target.write(page)
    print_written(f"circle {summary.id}", file, {"circle": summary.id}, as_json=as_json)
    return 0


def import_from(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="What `circles export` or `evaluate --json=full` wrote; - for standard input.",
        ),
    ],
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Import the circles of a file that are not in the store yet.

    Each is checked and saved whole or not at all. Lines without a circle are listed by number, the
    others are saved, and the exit status is 2.
    """
    taken, bad_lines = ImportProgress(), list[BadLine]()
    with readable(file) as source, open_store(store) as opened, progress("reading circle") as show_progress:
        for step in import_circles(opened.circles, source):
            if isinstance(step, ImportProgress):
                taken = step
                show_progress(taken.added + taken.known)
            elif len(bad_lines) < MOST_COMPLAINTS:
                bad_lines.append(step)
                complain(f"line {step.number}: {step.why}")
    if taken.bad > len(bad_lines):
        complain(f"and {counted(taken.bad - len(bad_lines), 'more bad line')}")
    refused = f", {counted(taken.bad, 'line')} refused" if taken.bad else ""
    print_outcome(
        f"{counted(taken.added, 'circle')} added, {taken.known:,} there already{refused}",
        {"file": file, **asdict(taken), "bad_lines": [asdict(line) for line in bad_lines]},
        as_json=as_json,
    )
    return TROUBLE if taken.bad else 0


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
    return "running" if summary.status == "sitting" else SHOWN[summary.verdict]


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
    how = "still running" if summary.status == "sitting" else STOP_WORDS[summary.status]
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
