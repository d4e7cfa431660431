"""`firecircle compare`: before and after, by the ids of prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import AsJson, StoreOption
from firecircle.cli.trouble import require_lab
from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.lab.runs.folder import RunFolder
    from firecircle.store.circles import CircleStore

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A batch's name, a run (its id, folder or last), or a circle's id."),
]
KINDS = ("batch", "run", "circle")


def compare(first: Name, second: Name, store: StoreOption = None, as_json: AsJson = False) -> int:
    """Compare two batches, two runs or two circles: what differs, and which verdicts flipped.

    Prompts go by their ids, or by their row where they have none, also when their text or the system text
    has changed. Put batch:, run: or circle: before a name that could be several things. F judges the
    incoming message, so a stricter system prompt raises it: `firecircle harden` measures a system prompt.

    \b
    firecircle batch messages.csv --system @old.txt --name before
    firecircle batch messages.csv --system @new.txt --name after
    firecircle compare before after
    """
    from firecircle.cli.compare.view import show_batches, show_circles, show_runs
    from firecircle.store.opening import open_store

    require_lab("compare", "duckdb")
    from firecircle.lab.compare_runs import compare_runs
    from firecircle.lab.compare_saved import compare_batches, compare_circles

    with open_store(store) as opened:
        kinds = [_kind(name, opened.circles) for name in (first, second)]
        names = [_without_kind(name) for name in (first, second)]
        if kinds[0] != kinds[1]:
            raise ConfigError(
                "compare",
                f"{names[0]} is a {kinds[0]} and {names[1]} a {kinds[1]}",
                "name two of a kind, with batch:, run: or circle: before them",
            )
        match kinds[0]:
            case "batch":
                show_batches(compare_batches(opened.circles, *names), as_json=as_json)
            case "circle":
                show_circles(compare_circles(opened.circles, *names), as_json=as_json)
            case _:
                show_runs(compare_runs(_run(names[0]), _run(names[1])), as_json=as_json)
    return 0


def _kind(name: str, circles: CircleStore) -> str:
    """What a name stands for: what is written before it, else the first of batch, run, circle that exists."""
    from firecircle.store.finding import Filters

    written, colon, _ = name.partition(":")
    if colon and written in KINDS:
        return written
    if circles.find(Filters(batch=name), limit=1).circles:
        return "batch"
    try:
        _run(name)
    except ConfigError:
        pass
    else:
        return "run"
    try:
        circles.summary(name)
    except ConfigError:
        raise ConfigError(
            "compare",
            f"{name} is not a saved batch, run or circle",
            "`firecircle circles list` and `firecircle lab report` show what is",
        ) from None
    return "circle"


def _without_kind(name: str) -> str:
    written, colon, rest = name.partition(":")
    return rest if colon and written in KINDS else name


def _run(name: str) -> RunFolder:
    from firecircle.lab.runs.folder import find_run

    return find_run(name)
