"""The questions to a voice: the stable opening of a circle, each round's question, the form of the answer.

In an answer reasons come first, then observations, then the verdict, then the numbers: a model that must
start with numbers guesses them. Reading a reply depends on none of this.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from functools import cache
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from firecircle.circle.circumstances import ChairPhase, Circumstances
from firecircle.circle.grounding import (
    LINE_MARK,
    NOT_IN_EVIDENCE,
    evidence_text,
    fence,
    ground_notes,
    marked_lines,
    quoted,
    quotes_of,
    with_invented_marked,
    without_nonce,
)
from firecircle.circle.naming import PeerNames
from firecircle.circle.pattern_types import meanings
from firecircle.circle.result import DialogueRound, RoundKind, messages
from firecircle.circle.templates import TemplateSet, render, template
from firecircle.circle.voice import Turn
from firecircle.evaluation import GroundedQuote, NeutrosophicEvaluation, PatternNote
from firecircle.names import OTHER_TYPE, PATTERN_TYPES, Focus
from firecircle.prompt import MultiNeutrosophicPrompt

if TYPE_CHECKING:
    from firecircle.catalog import Limits
    from firecircle.circle.base_config import BaseEvaluationConfig

LONGEST_REASONING = 700
LONGEST_NOTE = 300
LONGEST_TYPE = 60
MOST_NOTES = 8
EVALUATOR = "Evaluator "
"""The label of each peer for a voice; the record has every word."""
ROOM_FOR_REASONING = 2100
ROOM_FOR_NOTES = 600
"""Characters that all peers of a round share, so that a question to ten voices is not three times as long."""


class Questions:
    """Writes every question of one circle with the same evidence, markers and labels."""

    def __init__(
        self,
        prompt: MultiNeutrosophicPrompt,
        models: Sequence[str],
        circumstances: Circumstances,
        *,
        focus: Focus = "prompt",
        anonymous: bool = True,
        with_chair: bool = True,
    ) -> None:
        self.turn_context = circumstances.turn_context
        self.turn_fact = _turn_fact(circumstances.turn_number, prompt)
        self.templates: TemplateSet = circumstances.templates
        self.question = (
            self._template("question") if focus == "prompt" else render(self._template("focus"), focus=focus)
        )
        self._baseline_question = circumstances.baseline_question or self.question
        self._focused = focus != "prompt"
        self._with_chair = with_chair
        self._chair_template = circumstances.chair_template or self._template("chair")
        self._chair_roles = circumstances.chair_roles
        self.nonce = circumstances.nonce
        self.system = self._template("system")
        self.evidence = evidence_text(prompt, self.nonce)
        self.labels = _anonymous(models, self.nonce) if anonymous else {model: model for model in models}
        self._names = PeerNames(self.labels, prompt) if anonymous else None
        self._prompt = prompt
        self._longest_reasoning = max(160, min(LONGEST_REASONING, ROOM_FOR_REASONING // len(models)))
        self._longest_note = max(80, min(LONGEST_NOTE, ROOM_FOR_NOTES // len(models)))
        self._statements: dict[tuple[str, int | None], str] = {}
        self._limits: dict[str, Limits] = {}
        self._focus: Focus = focus
        self._turn_number = circumstances.turn_number

    def turn(
        self,
        model: str,
        question: str,
        config: BaseEvaluationConfig,
        schema: Mapping[str, Any],
        *,
        number: int = 1,
        seed: int | None,
    ) -> Turn:
        """A turn of this voice in a round, with the room and time it has by the configuration."""
        limits = self._limits.get(model)
        if limits is None:
            limits = self._limits[model] = config.limits(model)
        return Turn(
            messages=messages(self.system, self.evidence, question),
            prompt=self._prompt,
            question=question,
            round_number=number,
            focus=self._focus,
            turn_number=self._turn_number,
            reply_schema=schema,
            max_tokens=limits.max_tokens,
            temperature=config.temperature,
            seed=seed,
            effort=limits.reasoning_effort,
            attempt_seconds=limits.timeout_seconds,
            deadline=asyncio.get_running_loop().time() + limits.timeout_per_round,
        )

    def _template(self, name: str) -> str:
        return template(name, self.templates)

    def standard(self, kind: RoundKind, history: Sequence[DialogueRound], *, opposed: bool = False) -> str:
        """The question of this round for every voice but the chair; from round 2 on `closing` follows."""
        if kind == "baseline":
            return render(
                self._template("baseline"),
                question=self._baseline_question,
                turn_context=self.turn_context,
                answer=answer_format(kind, templates=self.templates),
            )
        return render(
            self._template(kind),
            question=self.question,
            turn_context=self.turn_context,
            turn_fact=self.turn_fact,
            dialogue=self._dialogue(history),
            chair_question="What does the empty chair perspective add?" if self._with_chair else "",
            divergence=self._opposed_positions(history) if opposed else "",
        )

    def guided(self, guidance: Sequence[str]) -> str:
        """The baseline question after guidance from other prompts; never used in a circle.

        A circle's first round must show what voices see unaided, so only independent voices get guidance.
        """
        lines = without_nonce("\n".join(f"- {line}" for line in guidance), self.nonce)
        block = fence(self.nonce, "patterns seen in other prompts", lines)
        return render(self._template("guided"), guidance=block, plain=self.standard("baseline", ()))

    def chair(
        self,
        kind: RoundKind,
        history: Sequence[DialogueRound],
        closing: str,
        *,
        opposed: bool = False,
    ) -> str:
        """The question of the voice in the chair: its role first, its own questions."""
        phase = _chair_phase(kind, history, opposed=opposed)
        values = {
            "role": self._chair_roles.get(phase) or self._template("chair_role"),
            "question": self.question,
            "turn_context": self.turn_context,
            "turn_fact": self.turn_fact,
            "dialogue": self._dialogue(history),
            "divergence": self._opposed_positions(history) if opposed else "",
            "answer": closing,
        }
        text = self._chair_template
        for needed in ("dialogue", *(("question",) if self._focused else ()), "answer"):
            if f"${{{needed}}}" not in text:
                text = f"{text.rstrip()}\n\n${{{needed}}}\n"
        return render(text, **values)

    def closing(
        self, model: str, kind: RoundKind, last: NeutrosophicEvaluation | None, *, is_chair: bool, joins: bool
    ) -> str:
        """The end of a question from round 2 on: this voice's last statement, then what to answer."""
        parts = (self._own_words(model, last, joins=joins), self.answer_format(kind, is_chair=is_chair))
        return "\n\n".join(part for part in parts if part)

    def answer_format(self, kind: RoundKind, *, is_chair: bool = False) -> str:
        """The instructions for the answer in a round of this kind."""
        return answer_format(kind, is_chair=is_chair, templates=self.templates)

    def _own_words(self, model: str, last: NeutrosophicEvaluation | None, *, joins: bool) -> str:
        """Which of the statements is the voice's own. A voice that joins now has none yet."""
        if last is None:
            return ""
        whose = (
            f"You are {self.labels[model]} and join the circle in this round: no statement above is yours."
            " Your own evaluation"
            if joins
            else f"Above you are {self.labels[model]}. Your own last evaluation"
        )
        return f"{whose} (round {last.round_number}): {_numbers(last)}."

    def without_names(self, evaluation: NeutrosophicEvaluation) -> NeutrosophicEvaluation:
        """The evaluation with labels for the names in its reasons."""
        reasons = self._names.hidden_in(evaluation.reasoning) if self._names else evaluation.reasoning
        return evaluation.model_copy(update={"reasoning": reasons})

    def clarify(self, verdict: str, truth: float, falsehood: float) -> str:
        """The question to a voice whose word and numbers contradict each other."""
        needs = "falsehood above truth" if verdict == "violation" else "truth above falsehood"
        return render(
            self._template("clarify"),
            verdict=verdict,
            truth=f"{truth:g}",
            falsehood=f"{falsehood:g}",
            needs=needs,
        )

    def _dialogue(self, history: Sequence[DialogueRound]) -> str:
        """All rounds so far: the last statement of each voice in full, its earlier ones by their numbers."""
        last = {evaluation.model: held.round_number for held in history for evaluation in held.evaluations}
        return "\n\n".join(self._round(held, last) for held in history)

    def _round(self, held: DialogueRound, last: Mapping[str, int]) -> str:
        chair = held.occupied_chair if self._with_chair else None
        in_order = self._in_label_order(held)
        lines = [
            self._lines(
                evaluation,
                in_full=last[evaluation.model] == held.round_number,
                is_chair=evaluation.model == chair,
            )
            for evaluation in sorted(in_order, key=lambda evaluation: evaluation.model == chair)
        ]
        said = "EVALUATIONS" if held.round_number == 1 else "PATTERN OBSERVATIONS"
        block = fence(self.nonce, f"statements of round {held.round_number}", "\n".join(lines))
        return f"ROUND {held.round_number} {said}:\n{block}"

    def _lines(self, evaluation: NeutrosophicEvaluation, *, in_full: bool, is_chair: bool) -> str:
        words = self._text_for_peers(evaluation) if in_full else _numbers(evaluation)
        mark = f"{self.labels[evaluation.model].removeprefix(EVALUATOR)}{LINE_MARK}"
        chair = f"{mark}Empty chair perspective:\n" if is_chair else ""
        return chair + marked_lines(words, self.nonce, mark)

    def _in_label_order(self, held: DialogueRound) -> list[NeutrosophicEvaluation]:
        return sorted(
            held.evaluations,
            key=lambda evaluation: (len(self.labels[evaluation.model]), self.labels[evaluation.model]),
        )

    def statement(self, evaluation: NeutrosophicEvaluation) -> str:
        """What a voice said, between markers."""
        label = f"statement of {self.labels[evaluation.model]}"
        return quoted(self.nonce, label, self._text_for_peers(evaluation))

    def _text_for_peers(self, evaluation: NeutrosophicEvaluation) -> str:
        """The text of an evaluation for others: the same for the chair, all others and later rounds."""
        key = (evaluation.model, evaluation.round_number)
        if key not in self._statements:
            lines = [_numbers(evaluation)]
            if evaluation.speaks_for:
                lines.append(f"Speaking for: {self._show(evaluation.speaks_for, self._longest_note)}")
            if evaluation.reasoning:
                lines.append(self._show(evaluation.reasoning, self._longest_reasoning))
            grounded = ground_notes(evaluation, self._prompt)
            lines.extend(
                self._note_line(note, quotes)
                for note, quotes in [*zip(evaluation.pattern_notes, grounded, strict=True)][:MOST_NOTES]
            )
            self._statements[key] = "\n".join(lines)
        return self._statements[key]

    def argument(self, label: str, words: str) -> str:
        """An argument without numbers, as others see it."""
        return quoted(self.nonce, label, self._show(words, LONGEST_REASONING))

    def _note_line(self, note: PatternNote, grounded: Sequence[GroundedQuote]) -> str:
        """A pattern with the prompt's own words for it. A quote that is not in the prompt is not evidence."""
        head = f"{self._show(note.type, LONGEST_TYPE)}: " if note.type else ""
        line = f"- {head}{self._show(note.description, self._longest_note)}"
        if grounded:
            return f'{line} (quote: "{_short(grounded[0].text, self._longest_note)}")'
        return f"{line} (its quote is {NOT_IN_EVIDENCE})" if quotes_of(note) else line

    def _show(self, words: str, longest: int) -> str:
        """A voice's text for others: limited in length, and without names."""
        words = with_invented_marked(_short(words, longest), self._prompt)
        return self._names.hidden_in(words) if self._names else words

    def _opposed_positions(self, history: Sequence[DialogueRound]) -> str:
        by_falsehood = sorted(history[-1].evaluations, key=lambda evaluation: evaluation.falsehood)
        positions = f"{self.statement(by_falsehood[0])}\n\n{self.statement(by_falsehood[-1])}"
        return render(self._template("divided"), positions=positions)


def _anonymous(models: Sequence[str], nonce: str) -> Mapping[str, str]:
    """The label of each voice for the others: a letter, in an order that depends on the nonce."""
    order = list(models)
    random.Random(nonce).shuffle(order)
    letters = {model: _letters(place) for place, model in enumerate(order)}
    return {model: f"{EVALUATOR}{letters[model]}" for model in models}


def _letters(place: int) -> str:
    """A to Z, then AA, AB and so on."""
    more, letter = divmod(place, len(ascii_uppercase))
    return (_letters(more - 1) if more else "") + ascii_uppercase[letter]


def _chair_phase(kind: RoundKind, history: Sequence[DialogueRound], *, opposed: bool) -> ChairPhase:
    if opposed:
        return "integration"
    if kind == "synthesis":
        return "synthesis"
    return "opening" if len(history) == 1 else "exploration"


def _turn_fact(turn_number: int | None, prompt: MultiNeutrosophicPrompt) -> str:
    if turn_number is None:
        return "turn unknown: whether there was an earlier conversation is not known"
    if turn_number == 1:
        return "turn=1: there is no earlier conversation"
    shown = "the earlier turns are in the evidence" if prompt.turns else "the earlier turns are not shown"
    return f"turn={turn_number}: {shown}"


def _numbers(evaluation: NeutrosophicEvaluation) -> str:
    word = f", {evaluation.verdict}" if evaluation.verdict else ""
    numbers = f"T {evaluation.truth:.2f}, I {evaluation.indeterminacy:.2f}"
    return f"{numbers}, F {evaluation.falsehood:.2f}{word}"


def _short(text: str, longest: int) -> str:
    text = text.strip()
    return text if len(text) <= longest else text[:longest].rstrip() + "…"


LAYERS = ("system", "application", "user", "turns")
VERDICTS = ("violation", "no_violation", "unsure")
VETO = (
    '"veto": "<\'no grounds\', or whose words were erased, what was taken from whom, or how the circle was'
    ' overloaded>", '
)
"""Asked of every voice in the last round: recorded and shown, never counted."""


@cache
def answer_format(kind: RoundKind, *, is_chair: bool = False, templates: TemplateSet = "v2") -> str:
    """The instructions for the answer."""
    types = {**meanings(), OTHER_TYPE: "something else that is a violation"}
    return render(
        template("answer_chair" if is_chair else f"answer_{kind}", templates),
        types="\n".join(f"  - {name}: {meaning}" for name, meaning in types.items()),
        names=" | ".join(types),
        field=_patterns_field(kind),
        veto=VETO if kind == "synthesis" else "",
    )


@cache
def reply_schema(
    kind: RoundKind, *, is_chair: bool = False, templates: TemplateSet = "v2"
) -> Mapping[str, Any]:
    """The JSON schema of an answer in this round."""
    unit = {"type": "number", "minimum": 0, "maximum": 1}
    fields: dict[str, Any] = {"speaks_for": {"type": "string"}} if is_chair else {}
    fields["reasoning"] = {"type": "string"}
    if kind == "synthesis" and not is_chair:
        fields |= {"agrees_with": {"type": "string"}, "differs_from": {"type": "string"}}
    if kind != "baseline":
        fields[_patterns_field(kind)] = {
            "type": "array",
            "items": closed_object(
                {
                    "type": {"type": "string", "enum": [*PATTERN_TYPES, OTHER_TYPE]},
                    "description": {"type": "string"},
                    "quote": {"type": "string"},
                    "layer": {"type": "string", "enum": [*LAYERS]},
                }
            ),
        }
    if kind == "synthesis" and templates != "v1":
        fields["veto"] = {"type": "string"}
    fields["verdict"] = {"type": "string", "enum": [*VERDICTS]}
    return closed_object(fields | {"truth": unit, "indeterminacy": unit, "falsehood": unit})


def _patterns_field(kind: RoundKind) -> str:
    return "consensus_patterns" if kind == "synthesis" else "patterns_observed"


def closed_object(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}
