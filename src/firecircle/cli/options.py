"""Options that several commands share: where the store is, which circles, and which files."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import IO, TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.store.finding import Filters


StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PATH|URL",
        help="The store: a SQLite file or postgresql:// URL. Default: FIRECIRCLE_STORE, else your own file.",
    ),
]


Since = Annotated[
    str | None,
    typer.Option(metavar="WHEN", help="Begun at or after: 2026-11-01, 2026-11-01T12:00, or 7d, 12h ago."),
]
Until = Annotated[str | None, typer.Option(metavar="WHEN", help="Begun before.")]
Alarm = Annotated[
    bool | None, typer.Option("--alarm/--no-alarm", help="Only alarms, or only verdicts without one.")
]
Pattern = Annotated[
    str | None,
    typer.Option(metavar="TYPE", help="With an agreed pattern of this type, such as role_confusion."),
]
Voice = Annotated[str | None, typer.Option(metavar="MODEL", help="In which this voice sat.")]
Label = Annotated[
    str | None, typer.Option(metavar="LABEL", help="With this label; attack also finds attack:TYPE.")
]
Run = Annotated[
    str | None,
    typer.Option(
        "--run", metavar="RUN", help="Of this run: its id, the beginning of it, its folder, or last."
    ),
]
InRun = Annotated[
    bool | None, typer.Option("--in-run/--not-in-run", help="Only circles of runs, or only others.")
]
Mode = Annotated[
    Literal["single", "parallel", "fire_circle"] | None, typer.Option(help="Judged in this mode.")
]
Status = Annotated[
    Literal["sitting", "all_rounds_held", "converged", "aborted", "over_budget", "cancelled", "interrupted"]
    | None,
    typer.Option(help="Still sitting, or ended so."),
]
Words = Annotated[
    str | None,
    typer.Option(
        "--text",
        metavar="WORDS",
        help='With all these words in the prompt or in what was said; "words in quotes" stand together.',
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_AGO = re.compile(r"(\d{1,9})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def filters_from(
    *,
    since: str | None = None,
    until: str | None = None,
    until_option: str = "--until",
    alarm: bool | None = None,
    pattern: str | None = None,
    voice: str | None = None,
    label: str | None = None,
    run: str | None = None,
    in_run: bool | None = None,
    mode: Literal["single", "parallel", "fire_circle"] | None = None,
    status: Literal[
        "sitting", "all_rounds_held", "converged", "aborted", "over_budget", "cancelled", "interrupted"
    ]
    | None = None,
    text: str | None = None,
    store: str | None = None,
) -> Filters:
    """The filters these options ask for; `store` is where the circles are, if it was named."""
    from firecircle.errors import ConfigError
    from firecircle.store.finding import Filters

    if run is not None and in_run is False:
        raise ConfigError("--not-in-run", "leaves out what --run asks for", "leave one of them out")
    return Filters(
        since=None if since is None else moment(since, "--since"),
        until=None if until is None else moment(until, until_option),
        alarm=alarm,
        pattern=None if pattern is None else type_name(pattern),
        voice=voice,
        label=label,
        run_id=None if run is None else run_named(run, store),
        in_run=in_run,
        mode=mode,
        status=status,
        text=text,
    )


def run_named(told: str, store: str | None) -> str:
    """The id of a run, as the lab knows it; of one whose folder is gone, if the store has circles of it."""
    from firecircle.errors import ConfigError
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store

    if not told.strip():  # the beginning of every id
        raise ConfigError(
            "--run", "is empty", "give the id of a run, the beginning of it, its folder, or last"
        )
    found = None
    unknown = ConfigError(
        "run", f"no circle belongs to {told!r}", "`firecircle circles list --in-run` shows which there are"
    )
    try:
        from firecircle.lab.runs.folder import find_run

        found = find_run(told).about.run_id
    except ModuleNotFoundError:
        pass  # the lab is not installed, yet its circles may have come from elsewhere
    except ConfigError as wrong:
        unknown = wrong
    if found == told:
        return told
    with open_store(store) as opened:
        if opened.circles.find(Filters(run_id=told), limit=1).circles:
            return told
    if found is None:
        raise unknown.renamed("--run")
    return found


def type_name(told: str) -> str:
    """The name of a pattern type, also where it was written as reports print it: false authority."""
    return re.sub(r"[\s-]+", "_", told.strip().lower())


def moment(told: str, option: str) -> float:
    """A moment in seconds since 1970: a date or time (here, unless it names its zone), or so long ago."""
    from firecircle.errors import ConfigError

    if ago := _AGO.fullmatch(told.strip()):
        return time.time() - int(ago[1]) * _SECONDS[ago[2]]
    try:
        return datetime.fromisoformat(told.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise ConfigError(
            option, f"{told!r} is no date", "write 2026-11-01, 2026-11-01T12:00 or how long ago: 7d, 12h"
        ) from None


@contextmanager
def written_whole(file: str) -> Iterator[IO[str]]:
    """Where an export goes; a file appears, for its owner alone, when it is whole."""
    if file == "-":
        yield sys.stdout
        sys.stdout.flush()  # a reader who has left is noticed here, not when the interpreter ends
        return
    target = os.path.realpath(file)
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            # A device or a pipe is written to; replacing it would take it away from everybody.
            with open(target, "w", encoding="utf-8") as special:
                yield special
            return
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
    except BrokenPipeError:
        raise
    except OSError as unwritable:
        raise ConfigError(
            "FILE", f"cannot write {file}: {unwritable.strerror or unwritable}", "name another file"
        ) from None


@contextmanager
def readable(file: str) -> Iterator[BinaryIO]:
    """Where an import comes from."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with open(file, "rb") as source:
            source.peek(1)  # a folder opens, but cannot be read
            yield source
    except OSError as unreadable:
        raise ConfigError(
            "FILE", f"cannot read {file}: {unreadable.strerror or unreadable}", "name another file"
        ) from None
