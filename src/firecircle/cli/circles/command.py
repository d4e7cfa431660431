"""`firecircle circles`: what was kept, found again, shown, carried elsewhere and taken out."""

from __future__ import annotations

from typing import Annotated

import typer

from firecircle.cli.circles.removal import delete, prune
from firecircle.cli.circles.transfer import export_to, import_from
from firecircle.cli.options import (
    Alarm,
    AsJson,
    InRun,
    Label,
    Mode,
    Pattern,
    Run,
    Since,
    Status,
    StoreOption,
    Until,
    Voice,
    Words,
    filters_from,
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The circle; the beginning of its id will do.")]


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


def list_circles(
    since: Since = None,
    until: Until = None,
    alarm: Alarm = None,
    pattern: Pattern = None,
    voice: Voice = None,
    label: Label = None,
    run: Run = None,
    in_run: InRun = None,
    mode: Mode = None,
    status: Status = None,
    text: Words = None,
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
    from firecircle.cli.circles.listing import show_page
    from firecircle.store.opening import open_store

    filters = filters_from(
        since=since,
        until=until,
        alarm=alarm,
        pattern=pattern,
        voice=voice,
        label=label,
        run=run,
        in_run=in_run,
        mode=mode,
        status=status,
        text=text,
        store=store,
    )
    with open_store(store) as opened:
        page = opened.circles.find(filters, before=before, limit=limit)
    return show_page(page, as_json=as_json)


def show(
    circle: Id,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print the prompt and what every voice said in every round.")
    ] = False,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record as JSON.")] = False,
) -> int:
    """Show one circle as `evaluate` told it; of one that was interrupted, all that was heard."""
    from firecircle.cli.circles.show import show_kept
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        summary = opened.circles.summary(circle)
        kept = opened.circles.load(summary.id)
    return show_kept(summary, kept, verbose=verbose, as_json=as_json)


def set_label(
    circle: Id,
    label: Annotated[
        str | None, typer.Argument(metavar="LABEL", help="What the prompt really is, such as attack.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Take the label away.")] = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Say what a circle's prompt really was; calibration and reports go by it."""
    from firecircle.cli.circles.listing import tell
    from firecircle.errors import ConfigError
    from firecircle.store.opening import open_store

    if (label is None) != none:
        raise ConfigError("LABEL", "give one, or --none to take it away")
    if label is not None and not label.strip():
        raise ConfigError("LABEL", "is empty", "--none takes a label away")
    with open_store(store) as opened:
        changed = opened.circles.set_label(circle, label)
    said = "has no label now" if label is None else f"has the label {label}"
    return tell(f"{changed.id} {said}", {"id": changed.id, "label": label}, as_json=as_json)


def cancel(circle: Id, store: StoreOption = None, as_json: AsJson = False) -> int:
    """Ask the process that holds a sitting circle to call it off; what was heard is kept."""
    from firecircle.cli.circles.listing import tell
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        asked = opened.circles.ask_to_cancel(circle)
    return tell(f"{asked.id} is asked to end", {"id": asked.id, "cancel_asked": True}, as_json=as_json)
