"""Voices by rounds, drawn to the width of a screen: when a circle is over, or while it sits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from firecircle.circle.events import (
    CircleClosed,
    CircleConvened,
    Event,
    Listener,
    QuorumChecked,
    ReserveAsked,
    RoundClosed,
    RoundStarted,
    VoiceAnswered,
    VoiceFailed,
    VoiceRecruited,
    VoiceRetried,
)
from firecircle.cli.output import bar, print_line
from firecircle.telling.answers import ALARM_SYMBOL, LOST_SYMBOL, RESERVE_SYMBOL, SYMBOL_MEANINGS, cares_about
from firecircle.telling.safe_text import printable_line, shortened
from firecircle.telling.table import Cell, VoiceTable
from firecircle.telling.words import FAILURE_WORDS, ROUND_WORDS, STOP_WORDS
from firecircle.thresholds import format_figure, reaches

GAP = 2
LONGEST_BAR, GOOD_BAR, SHORTEST_BAR = 12, 6, 3
GOOD_NAME, SHORTEST_NAME = 22, 8
NUMBER = len("0.00 ")
USUAL_SYMBOLS = 2
FOOTER = "mean ± spread"
ROOMY_CELL, CLOSE_CELL = len("0.00 ± 0.00"), len("✗ timeout")
LONGEST_REASON = 300
FRAMES_PER_SECOND = 8


def style_of(falsehood: float, threshold: float) -> str:
    """A colour for a falsehood; the alarm symbol says the same without colour."""
    if reaches(falsehood, threshold):
        return "bold red"
    return "yellow" if reaches(falsehood, threshold / 2) else "green"


@dataclass(frozen=True, slots=True)
class TableView:
    """Voices down, rounds across, a bar for every F, and a legend of the symbols that occur."""

    table: VoiceTable
    running: bool = False
    brief: bool = False
    """Without the mean of each round."""
    spinner: Spinner = field(default_factory=lambda: Spinner("dots"))
    since: float = field(default_factory=time.monotonic)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, the legend, and while the circle sits, who is awaited."""
        yield self._grid(options.max_width)
        if legend := self._legend():
            yield Text(legend, style="dim")
        if self.running:
            yield self._status()

    def _grid(self, width: int) -> Table:
        name_width, bar_width = self._widths(width)
        roomy = bar_width > 0
        any_closed = not self.brief and any(column.mean is not None for column in self.table.columns.values())
        grid = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, show_footer=any_closed)
        grid.add_column("", Text(FOOTER if roomy else "mean", style="dim"), no_wrap=True)
        for number in self.table.rounds:
            title, footer = self._title(number, roomy=roomy), self._summary(number, roomy=roomy)
            grid.add_column(title, footer, no_wrap=True, min_width=ROOMY_CELL if roomy else CLOSE_CELL)
        for voice in self.table.voices:
            cells = (self._cell(voice, number, bar_width) for number in self.table.rounds)
            grid.add_row(Text(shortened(self._name(voice), name_width)), *cells)
        return grid

    def _title(self, number: int, *, roomy: bool) -> Text:
        column = self.table.columns.get(number)
        title = Text(f"round {number}", style="bold" if column else "dim")
        if roomy:
            title.append(f"\n{ROUND_WORDS[column.kind] if column else ''}", style="not bold dim")
        return title

    def _summary(self, number: int, *, roomy: bool) -> Text:
        column = self.table.columns.get(number)
        if column is None or column.mean is None:
            return Text("")
        spread = f" ± {column.spread:.2f}" if roomy else ""
        return Text(f"{column.mean:.2f}{spread}", style="dim")

    def _widths(self, width: int) -> tuple[int, int]:
        """How wide names and bars may be: names in full if good bars fit beside them, else a compromise."""
        rounds = len(self.table.rounds)
        longest = max((cell_len(self._name(voice)) for voice in self.table.voices), default=0)
        longest = max(longest, len(FOOTER))
        most_symbols = max((len(cell.symbols) for cell in self.table.cells.values()), default=0)
        fixed = GAP + NUMBER + 1 + max(USUAL_SYMBOLS, most_symbols)

        def room_for_names(bar_width: int) -> int:
            return width - GAP - rounds * (fixed + bar_width)

        for bar_width in range(LONGEST_BAR, SHORTEST_BAR - 1, -1):
            enough = longest if bar_width > GOOD_BAR else min(longest, GOOD_NAME)
            if room_for_names(bar_width) >= enough:
                return min(longest, room_for_names(bar_width)), bar_width
        room = width - GAP - rounds * (CLOSE_CELL + GAP)
        return min(longest, max(SHORTEST_NAME, room)), 0

    def _name(self, voice: str) -> str:
        symbol = f"{RESERVE_SYMBOL} " if voice in self.table.recruited else ""
        return symbol + printable_line(voice)

    def _cell(self, voice: str, number: int, bar_width: int) -> RenderableType:
        cell = self.table.cells.get((voice, number))
        if cell is None:
            return Text("")
        if cell.failure is not None:
            return Text(f"{LOST_SYMBOL} {FAILURE_WORDS[cell.failure.kind]}", style="bold magenta")
        if cell.evaluation is None:
            return self._awaited(cell)
        falsehood = cell.evaluation.falsehood
        content = Text(
            f"{format_figure(falsehood, self.table.threshold)} ",
            style=style_of(falsehood, self.table.threshold),
        )
        content.append(f"{bar(falsehood, bar_width)} " if bar_width else "")
        content.append(cell.symbols, style="bold")
        return content

    def _awaited(self, cell: Cell) -> RenderableType:
        words = f"try {cell.retry.attempt}" if cell.retry else ""
        if not self.running:
            return Text("not heard", style="dim")
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row(self.spinner, Text(words))
        return grid

    def _legend(self) -> str:
        used = set("".join(cell.symbols for cell in self.table.cells.values()))
        if self.table.recruited:
            used.add(RESERVE_SYMBOL)
        meanings = {ALARM_SYMBOL: f"F at or above {self.table.threshold:.2f}", **SYMBOL_MEANINGS}
        return "   ".join(f"{symbol} {meaning}" for symbol, meaning in meanings.items() if symbol in used)

    def _status(self) -> RenderableType:
        waiting = self.table.waiting
        retries = [cell.retry for cell in waiting if cell.retry]
        seconds = time.monotonic() - self.since
        status = Text(f"listening to {len(waiting)} of {len(self.table.voices)} voices, {seconds:.0f} s")
        for retry in retries:
            status.append(
                f"\n{printable_line(retry.model)} tries again in {retry.wait_seconds:.1f} s"
                f" (attempt {retry.attempt}): {printable_line(retry.reason, 100)}",
                style="yellow",
            )
        return status


def line_of(event: Event, threshold: float) -> str:
    """The event in one line."""
    match event:
        case CircleConvened():
            return f"circle: {', '.join(map(printable_line, event.models))}"
        case RoundStarted(round_number=number):
            chair = event.empty_chair_model
            seat = f", {printable_line(chair)} in the empty chair" if chair else ""
            return f"round {number} ({ROUND_WORDS[event.round_kind]}): {len(event.models)} asked{seat}"
        case ReserveAsked():
            return f"round {event.round_number}: {printable_line(event.model)} is asked as a reserve"
        case VoiceRetried():
            return (
                f"round {event.round_number}: {printable_line(event.model)} tries again in"
                f" {event.wait_seconds:.1f} s (attempt {event.attempt}):"
                f" {printable_line(event.reason, LONGEST_REASON)}"
            )
        case VoiceAnswered(evaluation=evaluation):
            alarm = f" {ALARM_SYMBOL}" if reaches(evaluation.falsehood, threshold) else ""
            numbers = f"(T {evaluation.truth:.2f}, I {evaluation.indeterminacy:.2f})"
            notes = "".join(f"; {note}" for note in cares_about(evaluation))
            return (
                f"round {event.round_number}: {printable_line(event.model)}"
                f" F {format_figure(evaluation.falsehood, threshold)}{alarm} {numbers}{notes}"
            )
        case VoiceFailed(failure=failure):
            return (
                f"round {event.round_number}: {printable_line(event.model)} lost,"
                f" {FAILURE_WORDS[failure.kind]}: {printable_line(failure.message, LONGEST_REASON)}"
            )
        case VoiceRecruited(substitution=seat):
            lost_names = ", ".join(map(printable_line, seat.replaces))
            return f"round {event.round_number}: {printable_line(event.model)} replaces {lost_names}"
        case QuorumChecked(verdict=verdict):
            state = "holds" if verdict.valid else f"is broken: {verdict.reason}"
            waived = "" if verdict.enforced else " (not enforced)"
            return f"round {event.round_number}: quorum {state}{waived}"
        case RoundClosed():
            return (
                f"round {event.round_number} closed: mean F {event.f_score_mean:.2f},"
                f" spread {event.f_score_stddev:.2f}, {event.duration_seconds:.1f} s"
            )
        case CircleClosed(result=result):
            return f"circle closed: {STOP_WORDS[result.stopped]}"


@contextmanager
def following(
    console: Console, threshold: float, introduction: str, *, verbose: bool = True
) -> Iterator[Listener]:
    """A listener that shows each event as it comes: a live table on a terminal, a plain line anywhere else.

    Unless `verbose`, the table is gone when the circle is over, and a pipe is shown no events.

    The introduction waits until the voices are seated. A reader who left is shown nothing more; the circle
    goes on and is kept, and the report is where the command notices.
    """
    with ExitStack() as open_views:
        show: Listener | None = None

        def listener(event: Event) -> None:
            nonlocal show
            try:
                if show is None:
                    if introduction:
                        console.print(introduction, soft_wrap=not console.is_terminal)
                    show = open_views.enter_context(_view(console, threshold, verbose=verbose))
                show(event)
            except BrokenPipeError:
                show = _nothing

        yield listener


def _nothing(event: Event) -> None:
    """Nobody looks."""


@contextmanager
def _view(console: Console, threshold: float, *, verbose: bool) -> Iterator[Listener]:
    if console.is_terminal and not console.is_dumb_terminal:
        with _live(console, threshold, transient=not verbose) as listener:
            yield listener
    elif not verbose:
        yield _nothing
    else:
        yield lambda event: print_line(console, line_of(event, threshold))


@contextmanager
def _live(console: Console, threshold: float, *, transient: bool) -> Iterator[Listener]:
    view = TableView(VoiceTable(threshold), running=True)
    with Live(view, console=console, refresh_per_second=FRAMES_PER_SECOND, transient=transient) as live:

        def show(event: Event) -> None:
            nonlocal view
            # A table is never changed in place, so the thread that draws always sees a whole one.
            view = replace(view, table=view.table.after(event))
            live.update(view)

        try:
            yield show
        finally:
            live.update(replace(view, running=False))
