"""One voice's evaluation, and the result shape that all three modes share."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from firecircle.names import LayerName
from firecircle.shapes import Shape, Text, Unit

if TYPE_CHECKING:
    from firecircle.circle.result import DialogueRound, FireCircleResult, PatternObservation

Verdict = Literal["violation", "no_violation", "unsure"]
ReadAs = Literal["json", "stated", "reasoning", "logprobs", "keyword", "carried"]
Polarity = Literal["consistent", "clarified", "corrected"]
FoundBy = Literal["exact", "normalised", "fuzzy"]


_NO_GROUNDS = re.compile(r"\W*(?:no\b|none\b|n/?a\b|nothing\b|$)", re.IGNORECASE)


class PatternNote(Shape):
    """A pattern in the words of one voice: a description, and if the voice gave them, a type, a quote and a
    layer.
    """

    description: Text
    type: Text | None = None
    quote: Text | None = None
    layer: Text | None = None


class GroundedQuote(Shape):
    """A quote found in the prompt; `text` is the prompt's own wording."""

    text: Text
    layer: LayerName
    start: int
    end: int
    found_by: FoundBy
    quoted_by: Text = ""


class NeutrosophicEvaluation(Shape):
    """One voice's truth, indeterminacy and falsehood, each from 0 to 1, with its reasoning and the patterns
    it saw. High falsehood is always the alarm.
    """

    truth: Unit
    indeterminacy: Unit
    falsehood: Unit
    reasoning: Text = ""
    model: Text = ""
    round_number: int | None = None
    verdict: Verdict | None = None
    patterns_observed: tuple[PatternNote, ...] = ()
    consensus_patterns: tuple[PatternNote, ...] = ()
    speaks_for: Text | None = None
    """Whom the empty chair spoke for, in the chair's own words."""
    veto: Text | None = Field(default=None, exclude_if=operator.not_)
    """What the voice said in the last round about grounds for a veto, in its own words; never counted."""
    read_as: ReadAs = "json"
    """How the numbers were found: in the answer's JSON, stated in its text, or only in the `reasoning`
    channel; `logprobs`: falsehood is the probability of the verdict word; `keyword` is a guess; `carried`
    repeats the last round.
    """
    guessed: bool = False
    """True when the numbers rest on a keyword guess, now or in the round they were carried from."""
    polarity: Polarity = "consistent"
    """`corrected` when word and numbers contradicted each other twice and the word won."""
    imputed: tuple[Text, ...] = ()
    """Which of truth and indeterminacy the voice did not state."""
    reasoning_trace: Text | None = None
    raw_replies: tuple[Text, ...] = ()

    @field_validator("patterns_observed", "consensus_patterns", mode="before")
    @classmethod
    def _notes(cls, value: Any) -> Any:
        if value is None or value == ():
            return ()
        if isinstance(value, list | tuple):
            return tuple({"description": item} if isinstance(item, str) else item for item in value)
        return value

    @property
    def veto_grounds(self) -> str | None:
        """The grounds for a veto; None where the voice states none."""
        return None if self.veto is None or _NO_GROUNDS.match(self.veto) else self.veto

    @property
    def pattern_notes(self) -> tuple[PatternNote, ...]:
        """Everything this voice reported in this round, under any field name."""
        return self.patterns_observed + self.consensus_patterns


class EvaluationResult(Shape):
    """What every mode returns: the evaluations, their consensus, and metadata of the mode."""

    evaluations: tuple[NeutrosophicEvaluation, ...]
    consensus: NeutrosophicEvaluation | None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def from_fire_circle(cls, result: FireCircleResult) -> EvaluationResult:
        """A circle's result in the common shape: the last evaluation of every active voice."""
        return cls(
            evaluations=result.final_evaluations,
            consensus=result.consensus,
            metadata={
                "mode": "fire_circle",
                "dialogue_history": result.dialogue_history,
                "patterns": result.patterns,
                "empty_chair_influence": result.empty_chair_influence,
                "fire_circle": result,
            },
        )

    def get_dialogue_history(self) -> tuple[DialogueRound, ...] | None:
        """The rounds of the dialogue, in fire_circle mode."""
        return self.metadata.get("dialogue_history")

    def get_patterns(self) -> tuple[PatternObservation, ...] | None:
        """The agreed and grounded patterns, in fire_circle mode."""
        return self.metadata.get("patterns")

    def get_empty_chair_influence(self) -> float | None:
        """The share of pattern types the chair brought first, in fire_circle mode."""
        return self.metadata.get("empty_chair_influence")


def spread(evaluations: Sequence[NeutrosophicEvaluation]) -> float:
    """Population standard deviation of F: how far apart the voices are."""
    if not evaluations:
        return 0.0
    falsehoods = [evaluation.falsehood for evaluation in evaluations]
    mean = fmean(falsehoods)
    return math.sqrt(fmean([(falsehood - mean) ** 2 for falsehood in falsehoods]))
