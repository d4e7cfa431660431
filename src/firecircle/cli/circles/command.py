"""`firecircle circles`: what was kept, found again, shown, labelled, carried to another store, taken out."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import (
    RARE,
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
from firecircle.errors import ConfigError, StoreError, install_command

if TYPE_CHECKING:
    from firecircle.circle.deliberation import Dissent
    from firecircle.store.opening import Store

CircleId = Annotated[str, typer.Argument(metavar="ID", help="The circle; the beginning of its id will do.")]

NOTHING_DELETED = "nothing was deleted"


def circles_commands() -> typer.Typer:
    """The commands of the group."""
    group = typer.Typer(help="List, search, show, export and delete saved circles.")
    group.command("list")(list_circles)
    group.command()(show)
    group.command("export")(export_to)
    group.command("import")(import_from)
    group.command()(delete)
    group.command("label")(set_label)
    group.command()(cancel)
    return group


@with_options(FilterOptions, without=RARE)
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
    from firecircle.cli.circles.view import show_page
    from firecircle.cli.printable import printable_line
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store

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
    from firecircle.circle.deliberation import deliberation
    from firecircle.circle.result import FireCircleResult

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
    from firecircle.cli.circles.view import show_circle
    from firecircle.store.opening import open_store

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
    from firecircle.cli.output import is_confirmed, print_outcome
    from firecircle.store.opening import open_store
    from firecircle.telling.words import counted

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
    from firecircle.cli.output import is_confirmed, print_outcome, progress
    from firecircle.store.opening import open_store
    from firecircle.telling.words import counted

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


def set_label(
    circle: CircleId,
    label: Annotated[
        str | None, typer.Argument(metavar="LABEL", help="What the prompt really is, such as attack.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Take the label away.")] = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Set the true label of a circle's prompt; calibration and reports go by it."""
    from firecircle.cli.output import print_outcome
    from firecircle.store.opening import open_store

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
    from firecircle.cli.output import print_outcome
    from firecircle.store.opening import open_store

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
    from firecircle.cli.output import print_written, with_progress
    from firecircle.cli.trouble import MOST_COMPLAINTS, TROUBLE, complain
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store
    from firecircle.store.transfer import HEADER, dataset_lines, export_lines
    from firecircle.telling.words import counted

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
    from firecircle.cli.output import print_written
    from firecircle.store.opening import open_store

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
    from firecircle.cli.output import print_outcome, progress
    from firecircle.cli.trouble import MOST_COMPLAINTS, TROUBLE, complain
    from firecircle.store.opening import open_store
    from firecircle.store.transfer import BadLine, ImportProgress, import_circles
    from firecircle.telling.words import counted

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
