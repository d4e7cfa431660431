"""`firecircle circles`: what was kept, found again, shown, labelled and taken out."""

from __future__ import annotations

from typing import Annotated

import typer

from firecircle.cli.circles.transfer import export_to, import_from
from firecircle.cli.options import AsJson, FilterOptions, StoreOption, Yes, moment, with_options
from firecircle.errors import ConfigError

CircleId = Annotated[str, typer.Argument(metavar="ID", help="The circle; the beginning of its id will do.")]

NOTHING_DELETED = "nothing was deleted"


def circles_commands() -> typer.Typer:
    """The commands of the group."""
    group = typer.Typer(help="What was kept: listed, searched, shown, exported, deleted.")
    group.command("list")(list_circles)
    group.command()(show)
    group.command("export")(export_to)
    group.command("import")(import_from)
    group.command()(delete)
    group.command()(prune)
    group.command("label")(set_label)
    group.command()(cancel)
    return group


@with_options(FilterOptions)
def list_circles(
    *,
    given: FilterOptions,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="The most to list.")] = 50,
    before: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Go on where a list ended: what it said to add.")
    ] = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """List what was kept, the newest first. All filters that are given must hold.

    \b
    firecircle circles list --alarm --since 7d
    firecircle circles list --text '"as we agreed" invoice' --pattern temporal_inconsistency
    """
    from firecircle.cli.circles.view import show_page
    from firecircle.store.opening import open_store

    filters = given.filters(store)
    with open_store(store) as opened:
        page = opened.circles.find(filters, before=before, limit=limit)
    return show_page(page, as_json=as_json)


def show(
    circle: CircleId,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print the prompt and what every voice said in every round.")
    ] = False,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record as JSON.")] = False,
) -> int:
    """Show one circle as `evaluate` told it; of one that was interrupted, all that was heard."""
    from firecircle.cli.circles.view import show_circle
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        summary = opened.circles.summary(circle)
        kept = opened.circles.load(summary.id)
    return show_circle(summary, kept, verbose=verbose, as_json=as_json)


def delete(
    circles: Annotated[
        list[str], typer.Argument(metavar="ID...", help="The circles; the beginnings of their ids will do.")
    ],
    yes: Yes = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Take circles out of the store, with everything that belongs to them."""
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


@with_options(FilterOptions, without=("until",))
def prune(
    before: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Begun before: 2026-11-01, or 90d ago.")
    ] = None,
    *,
    given: FilterOptions,
    everything: Annotated[bool, typer.Option("--all", help="Every circle there is.")] = False,
    yes: Yes = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Take out every circle that matches, some at a time; those that still sit stay.

    \b
    firecircle circles prune --before 90d
    firecircle circles prune --label benign --no-alarm --yes
    """
    from firecircle.cli.output import is_confirmed, print_outcome, progress
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store
    from firecircle.telling.words import counted

    filters = given.filters(store)
    if before is not None:
        filters = filters.model_copy(update={"until": moment(before, "--before")})
    if (filters == Filters()) != everything:
        raise ConfigError(
            "--all", "say which circles, such as --before 90d, or --all for every one; not both"
        )
    with open_store(store) as opened:
        matching = opened.circles.count(filters)
        if not matching:
            return print_outcome("nothing kept matches", {"deleted": 0}, as_json=as_json)
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
    """Say what a circle's prompt really was; calibration and reports go by it."""
    from firecircle.cli.output import print_outcome
    from firecircle.store.opening import open_store

    if (label is None) != none:
        raise ConfigError("LABEL", "give one, or --none to take it away")
    if label is not None and not label.strip():
        raise ConfigError("LABEL", "is empty", "--none takes a label away")
    with open_store(store) as opened:
        changed = opened.circles.set_label(circle, label)
    change = "has no label now" if label is None else f"has the label {label}"
    return print_outcome(f"{changed.id} {change}", {"id": changed.id, "label": label}, as_json=as_json)


def cancel(circle: CircleId, store: StoreOption = None, as_json: AsJson = False) -> int:
    """Ask the process that holds a sitting circle to call it off; what was heard is kept."""
    from firecircle.cli.output import print_outcome
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        asked = opened.circles.ask_to_cancel(circle)
    document = {"id": asked.id, "cancel_asked": True}
    return print_outcome(f"{asked.id} is asked to end", document, as_json=as_json)
