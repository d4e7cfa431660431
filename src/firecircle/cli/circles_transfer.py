"""`circles export` and `circles import`: circles carried from one store to another, streamed both ways."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Annotated, BinaryIO

import typer

from firecircle.cli.circles_filters import (
    Alarm,
    AsJson,
    Label,
    Mode,
    Pattern,
    Run,
    Since,
    Status,
    Until,
    Voice,
    Words,
    filters_from,
)
from firecircle.cli.store_option import StoreOption

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
    mode: Mode = None,
    status: Status = None,
    text: Words = None,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Tell how many were written as JSON.")] = False,
) -> int:
    """Write every circle that matches as JSON lines, the oldest first. One that still sits is left out."""
    from firecircle.cli.layout import counted
    from firecircle.cli.printable import printable_line
    from firecircle.cli.screen import print_json
    from firecircle.errors import ConfigError
    from firecircle.store.opening import open_store
    from firecircle.store.transfer import exported

    if as_json and file == "-":
        raise ConfigError("--json: standard output is the export already; name a FILE or leave --json out")
    filters = filters_from(
        since=since,
        until=until,
        alarm=alarm,
        pattern=pattern,
        voice=voice,
        label=label,
        run=run,
        mode=mode,
        status=status,
        text=text,
    )
    lines = 0
    with open_store(store) as opened, _written(file) as target:
        for lines, line in enumerate(exported(opened.circles, filters)):  # noqa: B007 - the header is line 0
            target.write(line + "\n")
    if as_json:
        print_json({"file": file, "circles": lines})
    else:
        where = "" if file == "-" else f" to {printable_line(file)}"
        print(f"{counted(lines, 'circle')} written{where}", file=sys.stderr if file == "-" else sys.stdout)
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
    from dataclasses import asdict

    from firecircle.cli.layout import counted
    from firecircle.cli.screen import print_json
    from firecircle.cli.trouble import TROUBLE, complain
    from firecircle.store.opening import open_store
    from firecircle.store.transfer import BadLine, Taken, imported

    taken, bad = Taken(), list[BadLine]()
    with _readable(file) as source, open_store(store) as opened:
        for told in imported(opened.circles, source):
            if isinstance(told, Taken):
                taken = told
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


@contextmanager
def _written(file: str) -> Iterator[IO[str]]:
    """Where an export goes; a file appears when it is whole."""
    import tempfile

    from firecircle.errors import ConfigError

    if file == "-":
        yield sys.stdout
        return
    target = os.path.realpath(file)
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=os.path.dirname(target), prefix=".firecircle-", delete=False
        ) as half:
            try:
                yield half.file
                half.flush()
                os.fsync(half.fileno())
                os.replace(half.name, target)
            except BaseException:
                os.unlink(half.name)
                raise
    except OSError as unwritable:
        raise ConfigError(f"FILE: cannot write {file}: {unwritable.strerror or unwritable}") from None


@contextmanager
def _readable(file: str) -> Iterator[BinaryIO]:
    from firecircle.errors import ConfigError

    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with open(file, "rb") as source:
            source.peek(1)  # a folder opens, but cannot be read
            yield source
    except OSError as unreadable:
        raise ConfigError(f"FILE: cannot read {file}: {unreadable.strerror or unreadable}") from None
