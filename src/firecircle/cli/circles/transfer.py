"""`circles export` and `circles import`: circles carried to another store, or shown as one HTML page."""

from __future__ import annotations

import sys
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
    Until,
    Voice,
    Words,
    filters_from,
)
from firecircle.errors import ConfigError


def write_page(circle_id: str, file: str, store: str | None, *, as_json: bool) -> int:
    """Write the page of a circle or panel; the beginning of its id will do."""
    from firecircle.cli.options import written_whole
    from firecircle.cli.output import print_json
    from firecircle.cli.printable import printable_line
    from firecircle.store.opening import open_store

    try:
        from firecircle.web.export import exported_html
        from firecircle.web.rendering import templates
    except ModuleNotFoundError as missing:
        raise ConfigError(
            "--html", f"{missing.name} is not installed", "pip install 'firecircle[view]'"
        ) from None
    with open_store(store) as opened:
        summary = opened.circles.summary(circle_id)
        page = exported_html(templates(), summary, opened.circles.load(summary.id))
    with written_whole(file) as target:
        target.write(page)
    if as_json:
        print_json({"file": file, "circle": summary.id})
    else:
        where = "" if file == "-" else f" to {printable_line(file)}"
        print(f"circle {summary.id} written{where}", file=sys.stderr if file == "-" else sys.stdout)
    return 0


MOST_COMPLAINTS = 20
"""Bad lines told one by one; of a file that is something else entirely, the count is enough."""


def export_to(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Where to, what is there is replaced; - for standard output."),
    ] = "-",
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
    from firecircle.cli.options import written_whole
    from firecircle.cli.output import counted, counted_off, print_json
    from firecircle.cli.printable import printable_line
    from firecircle.cli.trouble import TROUBLE, complain
    from firecircle.errors import ConfigError, StoreError
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store
    from firecircle.store.transfer import export_lines

    if as_json and file == "-":
        raise ConfigError(
            "--json", "standard output is the export already", "name a FILE or leave --json out"
        )
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
    if html is not None:
        if filters != Filters():
            raise ConfigError("--html", "it names one circle already", "leave the filters out")
        return write_page(html, file, store, as_json=as_json)
    lines, unreadable = 0, list[StoreError]()
    with open_store(store) as opened, written_whole(file) as target:
        told = counted_off(export_lines(opened.circles, filters, unreadable.append), "writing circle")
        for lines, line in enumerate(told):  # noqa: B007 - the header is line 0
            target.write(line + "\n")
    if as_json:
        print_json({"file": file, "circles": lines, "unreadable": [str(why) for why in unreadable]})
    else:
        where = "" if file == "-" else f" to {printable_line(file)}"
        print(f"{counted(lines, 'circle')} written{where}", file=sys.stderr if file == "-" else sys.stdout)
    for why in unreadable[:MOST_COMPLAINTS]:
        complain(str(why))
    if more := unreadable[MOST_COMPLAINTS:]:
        complain(f"and {counted(len(more), 'more circle')} that cannot be read")
    return TROUBLE if unreadable else 0


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
    from dataclasses import asdict

    from firecircle.cli.options import readable
    from firecircle.cli.output import counted, counting, print_json
    from firecircle.cli.trouble import TROUBLE, complain
    from firecircle.store.opening import open_store
    from firecircle.store.transfer import BadLine, ImportProgress, import_circles

    taken, bad = ImportProgress(), list[BadLine]()
    with readable(file) as source, open_store(store) as opened, counting("reading circle") as tell:
        for told in import_circles(opened.circles, source):
            if isinstance(told, ImportProgress):
                taken = told
                tell(taken.added + taken.known)
            elif len(bad) < MOST_COMPLAINTS:
                bad.append(told)
                complain(f"line {told.number}: {told.why}")
    if taken.bad > len(bad):
        complain(f"and {counted(taken.bad - len(bad), 'more bad line')}")
    if as_json:
        print_json({"file": file, **asdict(taken), "bad_lines": [asdict(one) for one in bad]})
    else:
        told_bad = f", {counted(taken.bad, 'line')} refused" if taken.bad else ""
        print(f"{counted(taken.added, 'circle')} added, {taken.known:,} there already{told_bad}")
    return TROUBLE if taken.bad else 0
