"""What commands print: safe text and consoles, lines and JSON, sections, progress, confirmation."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from firecircle.errors import ConfigError
from firecircle.telling.safe_text import printable_line
from firecircle.telling.words import counted, shown_pause

if TYPE_CHECKING:
    from firecircle.verdict import VerdictWord
    from firecircle.voices.outages import Pause

NARROWEST, WIDEST = 40, 100
"""Columns. Longer lines are tiring to read, however wide the terminal."""
LABEL_WIDTH = 10
HANG = 2
"""How far the rest of a wrapped line stands in from its beginning."""
SHORT_ID = 8
"""How much of an id is enough to find a circle again."""
VERDICT_STYLES: Mapping[VerdictWord, str] = {
    "alarm": "bold red",
    "unsure": "yellow",
    "no_alarm": "green",
    "unread": "yellow",
    "no_verdict": "magenta",
}
PROGRESS_AFTER, PROGRESS_EVERY = 0.5, 0.1
"""Seconds: work that is done sooner shows no progress, and no terminal needs it more often."""
PATIENCE_SECONDS = 1.0
FRAMES_PER_SECOND, SECONDS_BETWEEN_LINES = 4, 5.0
PIPED = 400
"""Columns of a table that no terminal limits: nothing in it is cut."""

_STAND_INS = str.maketrans("█░◆↺⇄≈✗→…“”·±", '#.^<x~X>."".~')

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


# -- consoles, lines and JSON ----------------------------------------------------------------------------


def console_on(stream: TextIO) -> Console:
    """A console that shows styles and control sequences only when the stream is a terminal."""
    _make_encodable(stream)
    is_terminal = stream.isatty()
    console = Console(
        file=stream,
        force_terminal=is_terminal,
        color_system="auto" if is_terminal else None,
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.width = max(NARROWEST, min(console.width, WIDEST if is_terminal else console.width))
    return console


def table_console() -> Console:
    """Standard output for tables. A pipe has no width, so that no cell is shortened there."""
    console = console_on(sys.stdout)
    if not console.is_terminal:
        console.width = PIPED
    return console


def figures_table(titles: Iterable[str]) -> Table:
    """A table of names and, under these titles, figures."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("", no_wrap=True)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _make_encodable(stream: TextIO) -> None:
    """What the stream's encoding lacks is replaced by a stand-in instead of raising."""
    codecs.register_error("firecircle.stand_in", _stand_in)
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="firecircle.stand_in")


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    known = unknown.translate(_STAND_INS)
    return "".join(character if character.isascii() else "?" for character in known), error.end


def print_json(document: Any) -> None:
    """One JSON document on standard output, in ASCII, so that no text in it can steer a terminal."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    sys.stdout.flush()


def pause_line(pause: Pause) -> str:
    """Whom everybody waits for, and until when."""
    return shown_pause(printable_line(pause.host, 60), printable_line(pause.why, 120), pause.resumes_at)


def print_line(console: Console, line: str) -> None:
    """One line as it is, however long: a reader of a pipe must not find it broken in two."""
    print(line, file=console.file, flush=True)


def print_all(console: Console, parts: Iterable[RenderableType]) -> None:
    """The parts of a report, one below the other. Only a terminal has a width that text must keep to."""
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str) and not console.is_terminal)


def print_outcome(line: str, document: Mapping[str, object], *, as_json: bool) -> int:
    """What a command did, as one line or as JSON; the exit status."""
    if as_json:
        print_json(document)
    else:
        print_line(console_on(sys.stdout), printable_line(line))
    return 0


def print_written(what: str, file: str, document: Mapping[str, object], *, as_json: bool) -> None:
    """What an export wrote; on the error stream if standard output holds the export."""
    if as_json:
        print_json({"file": file, **document})
    elif file == "-":
        print(f"{what} written", file=sys.stderr)
    else:
        print(f"{what} written to {printable_line(file)}")


def short_id(kept_as: str) -> str:
    """As much of an id as finds it again; one with a number behind it is printed whole."""
    return kept_as if re.search(r"-\d+$", kept_as) else kept_as[:SHORT_ID]


def note_on_runs_left_out(count: int) -> str:
    """How many circles of runs a command left out, and how to read them."""
    return f"{counted(count, 'circle')} of runs left out (--where in_run=yes, or run=ID, reads them instead)"


# -- sections --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """One paragraph of a section, indented by so many steps."""

    text: Text
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """A label and its paragraphs."""

    label: str
    lines: Sequence[Line]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The paragraphs beside the label, without blanks at the line ends."""
        label = self.label
        for line in self.lines:
            for row in _rows(line, console, options.max_width - LABEL_WIDTH):
                yield Text().append(label.ljust(LABEL_WIDTH), style="bold").append_text(row)
                label = ""


def section(label: str, lines: Sequence[str | Line]) -> Iterator[Section]:
    """The section, or nothing if there is nothing to say."""
    if lines:
        yield Section(label, [line if isinstance(line, Line) else Line(Text(line)) for line in lines])


def print_sections(console: Console, sections: Iterable[tuple[str, Sequence[str | Line]]]) -> None:
    """Labels and their paragraphs, one below the other; a label without any is left out."""
    for label, lines in sections:
        for part in section(label, lines):
            console.print(part)


def bar(share: float, width: int) -> str:
    """A bar of the given width, filled to the share: any share shows, and only a whole one fills it."""
    filled = min(width, max(int(share * width + 1e-9), 1 if share > 0 else 0))
    return "█" * filled + "░" * (width - filled)


def _rows(line: Line, console: Console, width: int) -> Iterator[Text]:
    before = 2 * line.indent
    for place, row in enumerate(line.text.wrap(console, max(10, width - before - HANG))):
        row.rstrip()
        yield Text(" " * (before + (HANG if place else 0))).append_text(row)


# -- while the user waits, and before what cannot be undone ----------------------------------------------


@contextmanager
def progress(
    doing: str, total: int | None = None, *, after: float = PROGRESS_AFTER
) -> Iterator[Callable[[int], None]]:
    """What to call with how many are done; the line stands on the error stream, if that is a terminal.

    Where the total is known, it says how long the rest may take. What the first call tells was done before.
    """
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield lambda done: None
        return
    due = time.monotonic() + after
    of_total = "" if total is None else f" of {total:,}"
    is_shown = False
    begun: tuple[float, int] | None = None

    def show(done: int) -> None:
        nonlocal due, is_shown, begun
        now = time.monotonic()
        begun = begun or (now, done)
        if now >= due:
            due, is_shown = now + PROGRESS_EVERY, True
            left = "" if total is None else _time_left(now - begun[0], done - begun[1], total - done)
            print(f"\r\x1b[2K{doing} {done:,}{of_total}{left}", end="", file=stream, flush=True)

    try:
        yield show
    finally:
        if is_shown:
            print("\r\x1b[2K", end="", file=stream, flush=True)


@contextmanager
def shown_progress(
    console: Console,
    view: Callable[[Item], RenderableType],
    line: Callable[[Item], str],
    *,
    first_after: float = SECONDS_BETWEEN_LINES,
) -> Iterator[Callable[[Item], None]]:
    """What to call with how far the work is: on a terminal a view that changes, else a line now and then."""
    if console.is_terminal:
        from rich.live import Live

        latest: list[Item] = []

        def shown() -> RenderableType:
            return view(latest[0]) if latest else Text("")

        with Live(
            get_renderable=shown, console=console, refresh_per_second=FRAMES_PER_SECOND, transient=True
        ):
            yield lambda now: latest.__setitem__(slice(None), [now])
        return
    due = time.monotonic() + first_after

    def show(now: Item) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + SECONDS_BETWEEN_LINES
            print_line(console, line(now))

    yield show


def _time_left(seconds: float, done: int, to_do: int) -> str:
    """By the pace so far, when that is known and there is enough to wait for."""
    if done < 1 or seconds < PATIENCE_SECONDS or (left := to_do * seconds / done) < PATIENCE_SECONDS:
        return ""
    return f", about {shown_span(left)} left"


def shown_span(seconds: float) -> str:
    """A span of time as one reads it on a clock: seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def with_progress(items: Iterable[Item], doing: str) -> Iterator[Item]:
    """The same items, counted while they pass."""
    with progress(doing) as show:
        for number, item in enumerate(items, start=1):
            yield item
            show(number)


async def outcomes_of(
    work: Mapping[str, Coroutine[Any, Any, Outcome]],
    when_done: Callable[[str, Outcome], None] = lambda name, outcome: None,
) -> dict[str, Outcome]:
    """The outcome of every piece of work, all at once. Those that take long are named on the error stream."""
    names = {asyncio.create_task(coroutine): name for name, coroutine in work.items()}
    waiting = set(names)
    outcomes: dict[str, Outcome] = {}
    patience = PATIENCE_SECONDS
    try:
        while waiting:
            done, waiting = await asyncio.wait(waiting, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                outcomes[names[task]] = task.result()
                when_done(names[task], task.result())
            if not done:
                patience *= 2
                late = ", ".join(sorted(printable_line(names[task]) for task in waiting))
                print(f"waiting for {late}", file=sys.stderr, flush=True)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return {name: outcomes[name] for name in work}


def is_confirmed(question: str, *, yes: bool, otherwise: str) -> bool:
    """Whether the user wants it: said beforehand with --yes, or now at the terminal.

    Where nobody can be asked it is an error that says `otherwise`, such as "nothing was deleted".
    """
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError("--yes", "needed where there is no terminal to ask in", otherwise)
    print(f"{printable_line(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
