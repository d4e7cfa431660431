"""What a circle has said so far, as a table of voices and rounds. Each event gives the next board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
