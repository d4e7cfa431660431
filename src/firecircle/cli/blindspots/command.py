"""`firecircle blindspots`: what judging alone overlooked and talking found, and what may help."""

from __future__ import annotations

from typing import Annotated

import typer

from firecircle.cli.options import (
    AsJson,
    FilterOptions,
    StoreOption,
    Where,
    left_out_of_runs,
)


def blindspots(
    where: Where = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="F", min=0, max=1, help="Alarm threshold [default: the value used at the time]."
        ),
    ] = None,
    groups: Annotated[int, typer.Option(metavar="N", min=1, help="How many patterns to show.")] = 10,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Show what round 1 overlooked and the dialogue found, by pattern, and what could be said against it.

    Each prompt counts once. Labelled prompts come first, unlabelled ones apart. Circles of runs are left out,
    since several arms judge the same prompts, unless `--where run=` or `--where in_run=yes` asks for them.

    \b
    firecircle blindspots
    """
    from firecircle.cli.blindspots.view import show_blindspots
    from firecircle.cli.output import progress
    from firecircle.store.bank.blindspots import find_blindspots
    from firecircle.store.opening import open_store

    filters = FilterOptions().narrowed(where).circles_that_teach(store)
    with open_store(store) as opened:
        with progress("reading circle") as show_progress:
            overlooked = find_blindspots(
                opened.circles, filters, threshold=threshold, on_circle=show_progress
            )
        left_out = left_out_of_runs(opened.circles, filters)
    return show_blindspots(overlooked, groups, left_out, as_json=as_json)
