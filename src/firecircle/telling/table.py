"""Voices by rounds: what each said when, who held the chair, whose answer needs care, who was lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from firecircle.circle.panel import Panel
from firecircle.circle.result import Failure, FireCircleResult, RoundKind
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.telling.answers import ALARM_SYMBOL, CHAIR_SYMBOL, AnswerNote, notes_on
from firecircle.telling.patterns import with_names
from firecircle.thresholds import reaches


@dataclass(frozen=True, slots=True)
class Cell:
    """One voice in one round: asked, then tried again perhaps, then heard or lost."""

    model: str
    round_number: int
    evaluation: NeutrosophicEvaluation | None = None
    failure: Failure | None = None
    retry: VoiceRetried | None = None
    is_chair: bool = False
    is_alarm: bool = False
    moved: float | None = None
    """How far F moved since the round before."""
    is_consensus: bool = False
    """Whether this answer has the circle's highest F."""

    @property
    def is_open(self) -> bool:
        """Whether the voice was asked and neither heard nor lost."""
        return self.evaluation is None and self.failure is None

    @property
    def notes(self) -> tuple[AnswerNote, ...]:
        """What is notable about how the answer was read."""
        return notes_on(self.evaluation) if self.evaluation else ()

    @property
    def symbols(self) -> str:
        """Everything notable about the answer, one character each."""
        if self.evaluation is None:
            return ""
        alarm = ALARM_SYMBOL if self.is_alarm else ""
        chair = CHAIR_SYMBOL if self.is_chair else ""
        return alarm + chair + "".join(note.symbol for note in self.notes)


@dataclass(frozen=True, slots=True)
class Column:
    """One round that has begun; mean and spread of F once it is over."""

    kind: RoundKind
    chair: str | None = None
    mean: float | None = None
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class VoiceTable:
    """Voices down, rounds across. Never changed in place, so that whoever draws one sees a whole one."""

    threshold: float
    """The falsehood from which on an answer is an alarm."""
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

    def after(self, event: Event) -> VoiceTable:
        """The table once this has happened."""
        match event:
            case CircleConvened():
                return replace(self, voices=event.models, planned_rounds=event.max_rounds)
            case RoundStarted(round_number=number):
                column = Column(event.round_kind, event.empty_chair_model)
                begun = replace(self, columns={**self.columns, number: column})
                return begun._with(begun._asked(model, number) for model in event.models)
            case ReserveAsked(model=model, round_number=number):
                return self._with([self._asked(model, number)])
            case VoiceRetried(model=model, round_number=number):
                return self._with([replace(self._asked(model, number), retry=event)])
            case VoiceAnswered(model=model, round_number=number):
                return self._with([self._heard(model, number, event.evaluation)])
            case VoiceFailed(model=model, round_number=number):
                return self._with([replace(self._asked(model, number), failure=event.failure)])
            case VoiceRecruited():
                return replace(self, recruited=self.recruited | {event.model})
            case RoundClosed(round_number=number):
                column = replace(self.columns[number], mean=event.f_score_mean, spread=event.f_score_stddev)
                return replace(self, columns={**self.columns, number: column})
            case _:
                return self

    def _asked(self, model: str, number: int) -> Cell:
        column = self.columns.get(number)
        return Cell(model, number, is_chair=column is not None and column.chair == model)

    def _heard(self, model: str, number: int, evaluation: NeutrosophicEvaluation) -> Cell:
        before = self.cells.get((model, number - 1))
        return replace(
            self._asked(model, number),
            evaluation=evaluation,
            is_alarm=reaches(evaluation.falsehood, self.threshold),
            moved=evaluation.falsehood - before.evaluation.falsehood
            if before and before.evaluation
            else None,
        )

    def _with(self, cells: Iterable[Cell]) -> VoiceTable:
        added = {(cell.model, cell.round_number): cell for cell in cells}
        voices = dict.fromkeys((*self.voices, *(model for model, _ in added)))
        return replace(self, voices=tuple(voices), cells={**self.cells, **added})


def table_of_circle(result: FireCircleResult) -> VoiceTable:
    """The table of a circle as its record has it, also of one that still sits."""
    recruited = tuple(seat.model for seat in result.substitutions)
    measured = {metrics.round_number: metrics for metrics in result.round_metrics}
    columns = {}
    for held in result.dialogue_history:
        metrics = measured.get(held.round_number)
        columns[held.round_number] = Column(
            held.kind,
            held.empty_chair_model,
            metrics.f_score_mean if metrics else None,
            metrics.f_score_stddev if metrics else None,
        )
    table = VoiceTable(
        result.config.alarm_threshold,
        tuple(dict.fromkeys((*result.config.models, *recruited))),
        max(columns, default=1),
        columns,
        recruited=frozenset(recruited),
    )
    for held in result.dialogue_history:
        number = held.round_number
        table = table._with(table._asked(asked.model, number) for asked in held.voice_prompts)
        table = table._with(table._heard(answer.model, number, answer) for answer in held.evaluations)
    table = table._with(
        replace(table._asked(lost.model, lost.round_number), failure=lost) for lost in result.failures
    )
    consensus = result.consensus
    deciding = (
        table.cells.get((consensus.model, consensus.round_number))
        if consensus and consensus.round_number
        else None
    )
    return table._with([replace(deciding, is_consensus=True)]) if deciding else table


def table_of_panel(
    evaluations: Iterable[NeutrosophicEvaluation], failures: Iterable[Failure], threshold: float
) -> VoiceTable:
    """The table of voices that were asked once, apart from each other."""
    table = VoiceTable(threshold, columns={1: Column("baseline")})
    heard = [table._heard(answer.model, 1, answer) for answer in evaluations]
    lost = [Cell(failure.model, 1, failure=failure) for failure in failures]
    return table._with([*heard, *lost])


@dataclass(frozen=True, slots=True)
class VoiceRow:
    """A voice and its rounds."""

    model: str
    peer_label: str | None
    lineage: str
    standing: str
    """active, zombie (lost after its first words), excluded (lost before them), or joined, for a reserve."""
    cells: tuple[Cell | None, ...]
    """One for each round that has begun; None where the voice was not asked."""


def rows_of_circle(result: FireCircleResult) -> tuple[VoiceRow, ...]:
    """The voices of a circle, with who they are and what became of them."""
    table = table_of_circle(result)
    return tuple(
        VoiceRow(
            model,
            result.peer_labels.get(model),
            result.config.characteristics(model).provider_lineage,
            _standing(result, model),
            tuple(table.cells.get((model, number)) for number in table.columns),
        )
        for model in table.voices
    )


@dataclass(frozen=True, slots=True)
class LastWords:
    """What a voice said last: where it stands in the table, how it moved, and why."""

    row: int
    """From 1."""
    round_number: int
    first: float
    last: float
    reasoning: str


def last_words(judged: FireCircleResult | Panel) -> dict[str, LastWords]:
    """The last words of every voice that was heard, by its name."""
    if isinstance(judged, Panel):
        rows = rows_of_panel(judged.evaluations, judged.failures, judged.config.alarm_threshold)
        labels: Mapping[str, str] = {}
    else:
        rows, labels = rows_of_circle(judged), judged.peer_labels
    said: dict[str, LastWords] = {}
    for number, row in enumerate(rows, start=1):
        heard = [
            (cell.round_number, cell.evaluation) for cell in row.cells if cell is not None and cell.evaluation
        ]
        if heard:
            (_, first), (round_number, last) = heard[0], heard[-1]
            reasoning = with_names(last.reasoning, labels)
            said[row.model] = LastWords(number, round_number, first.falsehood, last.falsehood, reasoning)
    return said


def progress_of(result: FireCircleResult) -> str:
    """How far a circle is that still sits; empty before its first round."""
    if not result.dialogue_history:
        return ""
    held = result.dialogue_history[-1]
    planned = max(result.config.max_rounds, held.round_number)
    lost = sum(failure.round_number == held.round_number for failure in result.failures)
    gone = f", {lost} lost" if lost else ""
    return (
        f"round {held.round_number} of {planned},"
        f" {len(held.evaluations)} of {len(held.voice_prompts)} heard{gone}"
    )


def rows_of_panel(
    evaluations: Iterable[NeutrosophicEvaluation], failures: Iterable[Failure], threshold: float
) -> tuple[VoiceRow, ...]:
    """The voices of a panel and the one answer of each."""
    cells = table_of_panel(evaluations, failures, threshold).cells.values()
    return tuple(
        VoiceRow(cell.model, None, "", "active" if cell.evaluation else "excluded", (cell,)) for cell in cells
    )


def _standing(result: FireCircleResult, model: str) -> str:
    if any(failure.model == model for failure in result.failures):
        return "zombie" if model in result.zombies else "excluded"
    joined = next((seat for seat in result.substitutions if seat.model == model), None)
    return f"joined in round {joined.round_number}" if joined else "active"
