"""A circle as a table of voices and rounds: filled by its events, and drawn to the width of a screen."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from firecircle.circle.events import (
    CircleConvened,
    Event,
    ReserveAsked,
    RoundClosed,
    RoundStarted,
    VoiceAnswered,
    VoiceFailed,
    VoiceRecruited,
    VoiceRetried,
)
from firecircle.circle.result import Failure, RoundKind
from firecircle.cli.printable import printable_line, shortened
from firecircle.cli.report.marks import (
    ALARM_MARK,
    FAILURE_WORDS,
    LOST_MARK,
    MEANINGS,
    RESERVE_MARK,
    ROUND_WORDS,
    bar,
    marks_of,
    style_of,
)
from firecircle.evaluation import NeutrosophicEvaluation


@dataclass(frozen=True, slots=True)
class Cell:
    """One voice in one round: asked, then tried again perhaps, then heard or lost."""

    said: NeutrosophicEvaluation | None = None
    lost: Failure | None = None
    retry: VoiceRetried | None = None

    @property
    def is_open(self) -> bool:
        """Whether the voice is still to be heard."""
        return self.said is None and self.lost is None


@dataclass(frozen=True, slots=True)
class Column:
    """One round that has begun."""

    kind: RoundKind
    chair: str | None = None
    closed: RoundClosed | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """Voices down, rounds across."""

    voices: tuple[str, ...] = ()
    planned_rounds: int = 1
    columns: Mapping[int, Column] = field(default_factory=dict)
    cells: Mapping[tuple[str, int], Cell] = field(default_factory=dict)
    recruited: frozenset[str] = frozenset()

    @property
    def rounds(self) -> tuple[int, ...]:
        """The rounds planned, and any beyond."""
        return tuple(range(1, max(self.planned_rounds, *self.columns, 1) + 1))

    @property
    def waiting(self) -> tuple[Cell, ...]:
        """Who has been asked and not been heard."""
        return tuple(cell for cell in self.cells.values() if cell.is_open)

    def after(self, event: Event) -> Board:
        """The board once this has happened."""
        match event:
            case CircleConvened():
                return replace(self, voices=event.models, planned_rounds=event.max_rounds)
            case RoundStarted(round_number=number):
                asked = {(model, number): Cell() for model in event.models}
                column = Column(event.round_kind, event.empty_chair_model)
                return replace(self, columns={**self.columns, number: column}, cells={**self.cells, **asked})
            case ReserveAsked():
                return self._with(event.model, event.round_number, Cell())
            case VoiceRetried():
                return self._with(event.model, event.round_number, Cell(retry=event))
            case VoiceAnswered():
                return self._with(event.model, event.round_number, Cell(said=event.evaluation))
            case VoiceFailed():
                return self._with(event.model, event.round_number, Cell(lost=event.failure))
            case VoiceRecruited():
                return replace(self, recruited=self.recruited | {event.model})
            case RoundClosed(round_number=number):
                column = replace(self.columns[number], closed=event)
                return replace(self, columns={**self.columns, number: column})
            case _:
                return self

    def _with(self, model: str, number: int, cell: Cell) -> Board:
        voices = self.voices if model in self.voices else (*self.voices, model)
        return replace(self, voices=voices, cells={**self.cells, (model, number): cell})


def board_of_panel(evaluations: tuple[NeutrosophicEvaluation, ...], failures: tuple[Failure, ...]) -> Board:
    """The board of voices that were asked once, apart from each other."""
    heard = {(said.model, 1): Cell(said=said) for said in evaluations}
    lost = {(failure.model, 1): Cell(lost=failure) for failure in failures}
    cells = {**heard, **lost}
    return Board(tuple(model for model, _ in cells), 1, {1: Column("baseline")}, cells)


GAP = 2
LONGEST_BAR, GOOD_BAR, SHORTEST_BAR = 12, 6, 3
GOOD_NAME, SHORTEST_NAME = 22, 8
NUMBER = len("0.00 ")
USUAL_MARKS = 2
FOOTER = "mean ± spread"
ROOMY_CELL, CLOSE_CELL = len("0.00 ± 0.00"), len("✗ timeout")


@dataclass(frozen=True, slots=True)
class BoardView:
    """Voices down, rounds across, a bar for every F, and a legend of the marks that occur."""

    board: Board
    threshold: float
    running: bool = False
    spinner: Spinner = field(default_factory=lambda: Spinner("dots"))
    since: float = field(default_factory=time.monotonic)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, the legend, and while the circle sits, who is awaited."""
        yield self._table(options.max_width)
        if legend := self._legend():
            yield Text(legend, style="dim")
        if self.running:
            yield self._status()

    def _table(self, width: int) -> Table:
        name_width, bar_width = self._widths(width)
        roomy = bar_width > 0
        table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, show_footer=self._any_closed())
        table.add_column("", Text(FOOTER if roomy else "mean", style="dim"), no_wrap=True)
        for number in self.board.rounds:
            title, footer = self._title(number, roomy=roomy), self._summary(number, roomy=roomy)
            table.add_column(title, footer, no_wrap=True, min_width=ROOMY_CELL if roomy else CLOSE_CELL)
        for voice in self.board.voices:
            cells = (self._cell(voice, number, bar_width) for number in self.board.rounds)
            table.add_row(Text(shortened(self._name(voice), name_width)), *cells)
        return table

    def _title(self, number: int, *, roomy: bool) -> Text:
        column = self.board.columns.get(number)
        title = Text(f"round {number}", style="bold" if column else "dim")
        if roomy:
            title.append(f"\n{ROUND_WORDS[column.kind] if column else ''}", style="not bold dim")
        return title

    def _summary(self, number: int, *, roomy: bool) -> Text:
        column = self.board.columns.get(number)
        if column is None or column.closed is None:
            return Text("")
        spread = f" ± {column.closed.f_score_stddev:.2f}" if roomy else ""
        return Text(f"{column.closed.f_score_mean:.2f}{spread}", style="dim")

    def _widths(self, width: int) -> tuple[int, int]:
        """How wide names and bars may be: names in full if good bars fit beside them, else a compromise."""
        rounds = len(self.board.rounds)
        longest = max((cell_len(self._name(voice)) for voice in self.board.voices), default=0)
        longest = max(longest, len(FOOTER))
        marks = max((len(marks) for marks in self._all_marks()), default=0)
        fixed = GAP + NUMBER + 1 + max(USUAL_MARKS, marks)

        def room_for_names(bar_width: int) -> int:
            return width - GAP - rounds * (fixed + bar_width)

        for bar_width in range(LONGEST_BAR, SHORTEST_BAR - 1, -1):
            enough = longest if bar_width > GOOD_BAR else min(longest, GOOD_NAME)
            if room_for_names(bar_width) >= enough:
                return min(longest, room_for_names(bar_width)), bar_width
        room = width - GAP - rounds * (CLOSE_CELL + GAP)
        return min(longest, max(SHORTEST_NAME, room)), 0

    def _name(self, voice: str) -> str:
        mark = f"{RESERVE_MARK} " if voice in self.board.recruited else ""
        return mark + printable_line(voice)

    def _cell(self, voice: str, number: int, bar_width: int) -> RenderableType:
        cell = self.board.cells.get((voice, number))
        if cell is None:
            return Text("")
        if cell.lost is not None:
            return Text(f"{LOST_MARK} {FAILURE_WORDS[cell.lost.kind]}", style="bold magenta")
        if cell.said is None:
            return self._awaited(cell)
        falsehood = cell.said.falsehood
        shown = Text(f"{falsehood:.2f} ", style=style_of(falsehood, self.threshold))
        shown.append(f"{bar(falsehood, bar_width)} " if bar_width else "")
        shown.append(self._marks(voice, number), style="bold")
        return shown

    def _awaited(self, cell: Cell) -> RenderableType:
        words = f"try {cell.retry.attempt}" if cell.retry else ""
        if not self.running:
            return Text("not heard", style="dim")
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row(self.spinner, Text(words))
        return grid

    def _marks(self, voice: str, number: int) -> str:
        cell = self.board.cells[voice, number]
        column = self.board.columns.get(number)
        is_chair = column is not None and column.chair == voice
        return marks_of(cell.said, threshold=self.threshold, is_chair=is_chair) if cell.said else ""

    def _all_marks(self) -> list[str]:
        return [self._marks(*place) for place, cell in self.board.cells.items() if cell.said]

    def _any_closed(self) -> bool:
        return any(column.closed for column in self.board.columns.values())

    def _legend(self) -> str:
        used = set("".join(self._all_marks()))
        if self.board.recruited:
            used.add(RESERVE_MARK)
        meanings = {**MEANINGS, ALARM_MARK: f"F at or above {self.threshold:.2f}"}
        return "   ".join(f"{mark} {meaning}" for mark, meaning in meanings.items() if mark in used)

    def _status(self) -> RenderableType:
        waiting = self.board.waiting
        retries = [cell.retry for cell in waiting if cell.retry]
        seconds = time.monotonic() - self.since
        status = Text(f"listening to {len(waiting)} of {len(self.board.voices)} voices, {seconds:.0f} s")
        for retry in retries:
            status.append(
                f"\n{printable_line(retry.model)} tries again in {retry.wait_seconds:.1f} s"
                f" (attempt {retry.attempt}): {printable_line(retry.reason, 100)}",
                style="yellow",
            )
        return status
