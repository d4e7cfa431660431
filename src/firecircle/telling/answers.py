"""What must be known of one answer before its numbers are trusted, and everything that stands behind it."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.circle.panel import Panel
from firecircle.circle.result import CallRecord, Failure, FireCircleResult
from firecircle.evaluation import NeutrosophicEvaluation

ALARM_SYMBOL, CHAIR_SYMBOL, RESERVE_SYMBOL, LOST_SYMBOL = "!", "◆", "+", "✗"


@dataclass(frozen=True, slots=True)
class AnswerNote:
    """Something out of the ordinary about an answer."""

    word: str
    meaning: str
    symbol: str = ""
    """One character for a narrow table, where there is one."""
    needs_care: bool = True
    """Whether a reader must know before trusting the numbers."""


SYMBOL_MEANINGS = {
    CHAIR_SYMBOL: "empty chair",
    "↺": "repeats its last answer",
    "⇄": "polarity corrected",
    "≈": "keyword guess",
    RESERVE_SYMBOL: "reserve",
}
"""What the symbols of a table mean; from where on F is an alarm differs from circle to circle."""


def notes_on(evaluation: NeutrosophicEvaluation) -> tuple[AnswerNote, ...]:
    """Everything notable about how an answer was read."""
    notes = []
    if evaluation.read_as == "carried":
        meaning = "carried over from the round before, the reply could not be read"
        notes.append(AnswerNote("carried", meaning, "↺"))
    if evaluation.read_as == "stated":
        notes.append(
            AnswerNote("from text", "the numbers were stated in prose, not as JSON", needs_care=False)
        )
    if evaluation.read_as == "logprobs":
        notes.append(AnswerNote("by word", "falsehood is the probability of the verdict word"))
    if evaluation.guessed:
        notes.append(AnswerNote("guess", "guessed from a keyword, no numbers were stated", "≈"))
    if evaluation.polarity == "corrected":
        meaning = "polarity corrected: word and numbers contradicted each other and the word won"
        notes.append(AnswerNote("corrected", meaning, "⇄"))
    if evaluation.polarity == "clarified":
        meaning = "asked again because word and numbers contradicted each other"
        notes.append(AnswerNote("clarified", meaning))
    if evaluation.imputed:
        notes.append(AnswerNote("imputed", f"{' and '.join(evaluation.imputed)} not stated, imputed"))
    return tuple(notes)


def cares_about(evaluation: NeutrosophicEvaluation) -> tuple[str, ...]:
    """What a reader must know before trusting the numbers of an answer."""
    return tuple(note.meaning for note in notes_on(evaluation) if note.needs_care)


@dataclass(frozen=True, slots=True)
class Answer:
    """One voice in one round, in full. What it was asked is system message, evidence and question."""

    model: str
    round_number: int
    evaluation: NeutrosophicEvaluation | None
    failure: Failure | None
    is_chair: bool
    question: str
    calls: tuple[CallRecord, ...]


def answer_of(judged: FireCircleResult | Panel, model: str, round_number: int) -> Answer:
    """The answer of a voice; raises `LookupError` when it was not asked."""
    place = (model, round_number)
    calls = tuple(call for call in judged.calls if (call.model, call.round_number) == place)
    failure = next((lost for lost in judged.failures if (lost.model, lost.round_number) == place), None)
    if isinstance(judged, Panel):
        heard = judged.evaluations if round_number == 1 else ()
        evaluation = next((answer for answer in heard if answer.model == model), None)
        if evaluation is None and failure is None:
            raise LookupError(f"{model} was not asked in round {round_number}")
        return Answer(model, round_number, evaluation, failure, False, judged.question, calls)
    question = judged.question_to(model, round_number)
    held = next(held for held in judged.dialogue_history if held.round_number == round_number)
    evaluation = next((answer for answer in held.evaluations if answer.model == model), None)
    return Answer(model, round_number, evaluation, failure, model == held.empty_chair_model, question, calls)


def all_answers(judged: FireCircleResult | Panel) -> tuple[Answer, ...]:
    """Every answer, round by round."""
    if isinstance(judged, Panel):
        heard = (answer.model for answer in judged.evaluations)
        models = dict.fromkeys((*heard, *(lost.model for lost in judged.failures)))
        return tuple(answer_of(judged, model, 1) for model in models)
    return tuple(
        answer_of(judged, asked.model, held.round_number)
        for held in judged.dialogue_history
        for asked in held.voice_prompts
    )
