"""`circles export` and `circles import`: circles carried to another store, or shown as one HTML page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from firecircle.cli.options import (
    AsJson,
    FilterOptions,
    ReplacedFile,
    StoreOption,
    readable,
    refuse_json_beside_export,
    with_options,
    written_whole,
)
from firecircle.errors import ConfigError, StoreError

MOST_COMPLAINTS = 20
"""So many bad circles or lines are told one by one; of the others the count is enough."""


@with_options(FilterOptions)
def export_to(
    file: ReplacedFile = "-",
    *,
    given: FilterOptions,
    html: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Write this one circle instead, as a page that works from disk."),
    ] = None,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Tell how many were written as JSON.")] = False,
) -> int:
    """Write every circle that matches as JSON lines, the oldest first. One that still sits is left out.

    One that cannot be read is told, the others are written, and the exit status is 2.
    """
    from firecircle.cli.output import print_written, with_progress
    from firecircle.cli.trouble import TROUBLE, complain
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store
    from firecircle.store.transfer import export_lines
    from firecircle.telling.words import counted

    refuse_json_beside_export(file, as_json=as_json)
    filters = given.filters(store)
    if html is not None:
        if filters != Filters():
            raise ConfigError("--html", "it names one circle already", "leave the filters out")
        return _write_page(html, file, store, as_json=as_json)
    circles, unreadable = 0, list[StoreError]()
    with open_store(store) as opened, written_whole(file) as target:
        lines = export_lines(opened.circles, filters, unreadable.append)
        for circles, line in enumerate(with_progress(lines, "writing circle")):  # noqa: B007 - line 0 is the header
            target.write(line + "\n")
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
        raise ConfigError(
            "--html", f"{missing.name} is not installed", "pip install 'firecircle[view]'"
        ) from None
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
            help="What `circles export` wrote, or one result of `evaluate --json`; - for standard input.",
        ),
    ],
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Take over the circles of a file that are not there yet.

    Each is checked and kept whole or not at all. Lines that hold no circle are told with their numbers, the
    others are kept, and the exit status is 2.
    """
    from firecircle.cli.output import print_outcome, progress
    from firecircle.cli.trouble import TROUBLE, complain
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
