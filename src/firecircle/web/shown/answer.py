"""One voice in one round, in full: its reasoning, its raw words, and exactly what it was asked."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.circle.panel import Panel
from firecircle.circle.result import CallRecord, Failure, FireCircleResult
from firecircle.evaluation import NeutrosophicEvaluation


@dataclass(frozen=True, slots=True)
class Answer:
    """What stands behind one cell of the grid. The prompt is system message, evidence and question."""

    model: str
    round_number: int
    said: NeutrosophicEvaluation | None
    lost: Failure | None
    is_chair: bool
    question: str | None
    calls: tuple[CallRecord, ...]


def answer_of(kept: FireCircleResult | Panel, model: str, round_number: int) -> Answer:
    """The answer of a voice; raises `LookupError` when it was not asked."""
    calls = tuple(one for one in kept.calls if (one.model, one.round_number) == (model, round_number))
    lost = next((f for f in kept.failures if (f.model, f.round_number) == (model, round_number)), None)
    if isinstance(kept, Panel):
        said = next((one for one in kept.evaluations if one.model == model), None)
        if round_number != 1 or not (said or lost):
            raise LookupError(f"{model} was not asked in round {round_number}")
        return Answer(model, 1, said, lost, False, kept.question, calls)
    held = next((one for one in kept.dialogue_history if one.round_number == round_number), None)
    asked = next((one for one in held.voice_prompts if one.model == model), None) if held else None
    if held is None or asked is None:
        raise LookupError(f"{model} was not asked in round {round_number}")
    said = next((one for one in held.evaluations if one.model == model), None)
    question = asked.text if asked.is_chair else held.prompt_used + asked.text
    return Answer(model, round_number, said, lost, asked.is_chair, question, calls)


def all_answers(kept: FireCircleResult | Panel) -> tuple[Answer, ...]:
    """Every answer, round by round."""
    if isinstance(kept, Panel):
        models = dict.fromkeys((*(s.model for s in kept.evaluations), *(f.model for f in kept.failures)))
        return tuple(answer_of(kept, model, 1) for model in models)
    return tuple(
        answer_of(kept, asked.model, held.round_number)
        for held in kept.dialogue_history
        for asked in held.voice_prompts
    )
