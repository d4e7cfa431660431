"""Voices by rounds: what each said when, who held the chair, whose words were mended, who was lost."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.circle.panel import Panel
from firecircle.circle.result import CircleRecord, Failure, FireCircleResult
from firecircle.evaluation import NeutrosophicEvaluation


@dataclass(frozen=True, slots=True)
class Badge:
    """A mark on an answer and what it means."""

    word: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One voice in one round."""

    model: str
    round_number: int
    said: NeutrosophicEvaluation | None = None
    lost: Failure | None = None
    is_chair: bool = False
    waiting: bool = False
    """Asked, and not heard yet."""
    unanswered: bool = False
    """Asked, and the circle ended before an answer came."""
    badges: tuple[Badge, ...] = ()
    moved: float | None = None
    """How far F moved since the round before."""
    decides: bool = False
    """Whether the circle's verdict is this answer."""
    alarm: bool = False


@dataclass(frozen=True, slots=True)
class VoiceRow:
    """A voice and its rounds."""

    model: str
    peer_label: str | None
    lineage: str
    standing: str
    """active, zombie (lost after its first words), excluded (lost before them), or joined, for a reserve."""
    cells: tuple[Cell, ...]


def voice_rows(result: FireCircleResult, *, sitting: bool) -> tuple[VoiceRow, ...]:
    """The grid of a circle; of one that still sits, with those who are being waited for."""
    seated = (*result.config.models, *(new.model for new in result.substitutions))
    return tuple(
        VoiceRow(
            model,
            result.peer_labels.get(model),
            result.config.characteristics(model).provider_lineage if model in seated else "",
            _standing(result, model),
            tuple(
                _cell(result, model, held.round_number, sitting=sitting) for held in result.dialogue_history
            ),
        )
        for model in dict.fromkeys(seated)
    )


def panel_rows(panel: Panel) -> tuple[VoiceRow, ...]:
    """The one column of a panel."""
    threshold = panel.config.alarm_threshold
    said = {one.model: one for one in panel.evaluations}
    lost = {one.model: one for one in panel.failures}
    rows = []
    for model in dict.fromkeys((*said, *lost)):
        answer = said.get(model)
        cell = Cell(
            model,
            1,
            answer,
            lost.get(model),
            badges=_badges(answer) if answer else (),
            alarm=bool(answer and answer.falsehood >= threshold),
        )
        rows.append(VoiceRow(model, None, "", "active" if answer else "excluded", (cell,)))
    return tuple(rows)


def _standing(result: FireCircleResult, model: str) -> str:
    if any(failure.model == model for failure in result.failures):
        return "zombie" if model in result.zombies else "excluded"
    joined = next((new for new in result.substitutions if new.model == model), None)
    return f"joined in round {joined.round_number}" if joined else "active"


def _cell(result: FireCircleResult, model: str, number: int, *, sitting: bool) -> Cell:
    held = result.dialogue_history[number - 1]
    said = _said(result, model, number)
    before = _said(result, model, number - 1)
    lost = next((f for f in result.failures if f.model == model and f.round_number == number), None)
    asked = any(prompt.model == model for prompt in held.voice_prompts)
    unheard = asked and said is None and lost is None
    consensus = result.consensus
    return Cell(
        model=model,
        round_number=number,
        said=said,
        lost=lost,
        is_chair=held.empty_chair_model == model,
        waiting=sitting and unheard,
        unanswered=unheard and not sitting,
        badges=_badges(said) if said else (),
        moved=said.falsehood - before.falsehood if said and before else None,
        decides=bool(consensus and consensus.model == model and consensus.round_number == number),
        alarm=bool(said and said.falsehood >= result.config.alarm_threshold),
    )


def _said(record: CircleRecord, model: str, number: int) -> NeutrosophicEvaluation | None:
    if not 1 <= number <= len(record.dialogue_history):
        return None
    held = record.dialogue_history[number - 1]
    return next((said for said in held.evaluations if said.model == model), None)


def _badges(said: NeutrosophicEvaluation) -> tuple[Badge, ...]:
    badges = []
    if said.read_as == "carried":
        badges.append(Badge("carried", "the reply could not be read; the round before stands"))
    if said.read_as == "stated":
        badges.append(Badge("from text", "the numbers were stated in prose, not as JSON"))
    if said.read_as == "logprobs":
        badges.append(Badge("by word", "falsehood is the probability of the verdict word"))
    if said.guessed:
        badges.append(Badge("guess", "the numbers rest on a keyword, the voice stated none"))
    if said.polarity == "corrected":
        badges.append(Badge("corrected", "word and numbers contradicted each other twice; the word won"))
    if said.polarity == "clarified":
        badges.append(Badge("clarified", "asked again because word and numbers contradicted each other"))
    if said.imputed:
        badges.append(Badge("imputed", f"not stated by the voice: {', '.join(said.imputed)}"))
    return tuple(badges)
