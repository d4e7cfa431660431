"""`circles delete` and `circles prune`: taken out for good, and only when that is really meant."""

from __future__ import annotations

from typing import Annotated

import typer

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
    Voice,
    Words,
    filters_from,
)
from firecircle.cli.output import is_meant

NOTHING_DONE = "nothing was deleted"
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def delete(
    circles: Annotated[
        list[str], typer.Argument(metavar="ID...", help="The circles; the beginnings of their ids will do.")
    ],
    yes: Yes = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Take circles out of the store, with everything that belongs to them."""
    from firecircle.cli.circles.listing import tell
    from firecircle.cli.output import counted
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        found = {one.id: one for one in map(opened.circles.summary, circles)}
        what = counted(len(found), "circle")
        if not is_meant(f"Delete {what} ({', '.join(found)})?", yes=yes, otherwise=NOTHING_DONE):
            return tell(NOTHING_DONE, {"deleted": []}, as_json=as_json)
        for name in found:
            opened.circles.delete(name)
    return tell(f"{what} deleted", {"deleted": list(found)}, as_json=as_json)


def prune(
    before: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Begun before: 2026-11-01, or 90d ago.")
    ] = None,
    since: Since = None,
    alarm: Alarm = None,
    pattern: Pattern = None,
    voice: Voice = None,
    label: Label = None,
    run: Run = None,
    in_run: InRun = None,
    mode: Mode = None,
    status: Status = None,
    text: Words = None,
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
    from firecircle.cli.circles.listing import tell
    from firecircle.cli.output import counted, counting
    from firecircle.errors import ConfigError
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store

    filters = filters_from(
        since=since,
        until=before,
        until_option="--before",
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
    if (filters == Filters()) != everything:
        raise ConfigError(
            "--all", "say which circles, such as --before 90d, or --all for every one; not both"
        )
    with open_store(store) as opened:
        matching = opened.circles.count(filters)
        if not matching:
            return tell("nothing kept matches", {"deleted": 0}, as_json=as_json)
        if not is_meant(
            f"Delete {counted(matching, 'circle')} from {opened.name}?", yes=yes, otherwise=NOTHING_DONE
        ):
            return tell(NOTHING_DONE, {"deleted": 0}, as_json=as_json)
        gone = 0
        with counting("deleting circle", matching) as tell_progress:
            for some in opened.circles.prune(filters):
                gone += some
                tell_progress(gone)
    return tell(f"{counted(gone, 'circle')} deleted", {"deleted": gone}, as_json=as_json)
