"""Circles of runs teach only when asked for: the arms of a run judge the same prompts again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from firecircle.store.circles import CircleStore
    from firecircle.store.finding import Filters

InRun = Annotated[
    bool, typer.Option("--in-run", help="Only circles of runs; left out unless this or --run is given.")
]


def in_run_of(run: str | None, in_run: bool) -> bool | None:
    """What a filter says about runs: a run that is named speaks for itself."""
    return None if run is not None else in_run


def left_out(circles: CircleStore, filters: Filters) -> int:
    """How many circles would match these filters if those of runs were not left out."""
    if filters.in_run is not False:
        return 0
    return circles.count(filters.model_copy(update={"in_run": True}))


def left_out_told(number: int) -> str:
    """The same for a reader, with the way to them."""
    from firecircle.cli.output import counted

    return f"{counted(number, 'circle')} of runs left out (--in-run, or --run ID, reads them instead)"
