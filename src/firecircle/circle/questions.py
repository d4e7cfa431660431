"""What a voice is asked: the stable opening of a circle, and the question of each round."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from string import Template

from firecircle.circle.circumstances import ChairPhase, Circumstances
from firecircle.circle.evidence import evidence_text, fence, without_nonce
from firecircle.circle.result import DialogueRound, RoundKind
from firecircle.errors import ConfigError
from firecircle.evaluation import NeutrosophicEvaluation, PatternNote
from firecircle.names import OTHER_TYPE, PATTERN_TYPES, Focus
from firecircle.prompt import MultiNeutrosophicPrompt

LONGEST_REASONING = 700
LONGEST_NOTE = 300
MOST_NOTES = 8
"""What a voice is shown of each peer; the record keeps every word."""

_PLACEHOLDER_LINE = re.compile(r"\$\{(\w+)\}")


class Questions:
    """Words every question of one circle: same evidence, same markers, same labels throughout."""

    def __init__(
        self,
        prompt: MultiNeutrosophicPrompt,
        models: Sequence[str],
        circumstances: Circumstances,
        *,
        focus: Focus = "prompt",
        anonymous: bool = True,
    ) -> None:
        self._turn_context = circumstances.turn_context
        self._turn_fact = _turn_fact(circumstances.turn_number, prompt)
        self._baseline_question = circumstances.baseline_question or _question_about(focus)
        self._chair_template = circumstances.chair_template or template("chair")
        self._chair_roles = circumstances.chair_roles
        self.nonce = circumstances.nonce
        self.system = template("system").strip()
        self.evidence = evidence_text(prompt, self.nonce)
        self.labels = _anonymous(models, self.nonce) if anonymous else {model: model for model in models}
        self._statements: dict[tuple[str, int | None], str] = {}

    def standard(self, kind: RoundKind, history: Sequence[DialogueRound], *, opposed: bool = False) -> str:
        """The question that every voice but the chair is asked in this round."""
        if kind == "baseline":
            return render(
                template("baseline"), question=self._baseline_question, turn_context=self._turn_context
            )
        return render(
            template(kind),
            turn_context=self._turn_context,
            turn_fact=self._turn_fact,
            dialogue=self._dialogue(history),
            divergence=self._opposed_positions(history) if opposed else "",
            answer=_answer_format(kind),
        )

    def guided(self, guidance: Sequence[str]) -> str:
        """The plain question after what was learnt from other prompts; never asked in a circle.

        A circle's first round must show what voices see unaided, so only judging alone may be guided.
        """
        lines = without_nonce("\n".join(f"- {line}" for line in guidance), self.nonce)
        block = fence(self.nonce, "patterns seen in other prompts", lines)
        return render(template("guided"), guidance=block, plain=self.standard("baseline", ()))

    def chair(self, kind: RoundKind, history: Sequence[DialogueRound], *, opposed: bool = False) -> str:
        """The question of the one who speaks for the absent: its role first, its own questions."""
        phase = _chair_phase(kind, history, opposed=opposed)
        values = {
            "role": self._chair_roles.get(phase) or template("chair_role").strip("\n"),
            "turn_context": self._turn_context,
            "turn_fact": self._turn_fact,
            "dialogue": self._dialogue(history),
            "divergence": self._opposed_positions(history) if opposed else "",
            "answer": _answer_format(kind, is_chair=True),
        }
        text = self._chair_template
        for needed in ("dialogue", "answer"):
            if f"${{{needed}}}" not in text:
                text += f"\n\n${{{needed}}}\n"
        return render(text, **values)

    def own_part(self, model: str, last: NeutrosophicEvaluation | None) -> str:
        """What only this voice is told: which of the statements is its own."""
        if last is None:
            return ""
        whose = f"In the statements above you are {self.labels[model]}. Your own last evaluation"
        return f"\n\n{whose} (round {last.round_number}): {_numbers(last)}."

    def clarify(self, verdict: str, truth: float, falsehood: float) -> str:
        """The question to a voice whose word and numbers contradict each other."""
        needs = "falsehood above truth" if verdict == "violation" else "truth above falsehood"
        return render(
            template("clarify"), verdict=verdict, truth=f"{truth:g}", falsehood=f"{falsehood:g}", needs=needs
        )

    def _dialogue(self, history: Sequence[DialogueRound]) -> str:
        """Everything said so far: the baseline in full, later rounds by what was observed in them."""
        parts: list[str] = []
        for held in history:
            if held.round_number == 1:
                parts.append("ROUND 1 EVALUATIONS:")
                parts.extend(self._statement(evaluation) for evaluation in self._in_label_order(held))
                continue
            in_order, chair = self._in_label_order(held), held.empty_chair_model
            parts.append(f"ROUND {held.round_number} PATTERN OBSERVATIONS:")
            parts.extend(self._statement(evaluation) for evaluation in in_order if evaluation.model != chair)
            parts.append("Empty chair perspective (speaking for future/absent):")
            parts.extend(self._statement(evaluation) for evaluation in in_order if evaluation.model == chair)
            if not held.occupied_chair:
                parts.append("(nobody held the chair in that round)")
        return "\n\n".join(parts)

    def _in_label_order(self, held: DialogueRound) -> list[NeutrosophicEvaluation]:
        return sorted(held.evaluations, key=lambda evaluation: self.labels[evaluation.model])

    def _statement(self, evaluation: NeutrosophicEvaluation) -> str:
        """What a voice said, fenced: the chair, all others and later rounds are told the same."""
        key = (evaluation.model, evaluation.round_number)
        if key not in self._statements:
            self._statements[key] = self._worded(evaluation)
        return self._statements[key]

    def _worded(self, evaluation: NeutrosophicEvaluation) -> str:
        lines = [_numbers(evaluation)]
        if evaluation.speaks_for:
            lines.append(f"Speaking for: {_short(evaluation.speaks_for, LONGEST_NOTE)}")
        if evaluation.reasoning:
            lines.append(_short(evaluation.reasoning, LONGEST_REASONING))
        lines.extend(_note_line(note) for note in evaluation.pattern_notes[:MOST_NOTES])
        statement = without_nonce("\n".join(lines), self.nonce)
        return fence(self.nonce, f"statement of {self.labels[evaluation.model]}", statement)

    def _opposed_positions(self, history: Sequence[DialogueRound]) -> str:
        by_falsehood = sorted(history[-1].evaluations, key=lambda evaluation: evaluation.falsehood)
        return (
            "The circle is still divided. The two positions farthest apart:\n\n"
            f"{self._statement(by_falsehood[0])}\n\n{self._statement(by_falsehood[-1])}\n\n"
            "Say what would have to be true of the evidence for each of them to be right, and which it is."
        )


@cache
def template(name: str) -> str:
    """The text of a prompt template that ships with the package."""
    place = resources.files("firecircle.circle").joinpath("templates", f"{name}.txt")
    try:
        return place.read_text("utf-8")
    except FileNotFoundError:
        raise ConfigError(None, f"prompt template {name}.txt is missing", "reinstall firecircle") from None


def render(text: str, **values: str) -> str:
    """Fill a template in one pass, so that braces or names inside a value stay what they are.

    A line that holds nothing but an empty value goes, together with the blank line after it.
    """
    lines: list[str] = []
    skip_blank = False
    for line, name in _lines_of(text):
        if name and values.get(name) == "":
            skip_blank = True
            continue
        if not (skip_blank and not line.strip()):
            lines.append(line)
        skip_blank = False
    return Template("\n".join(lines)).safe_substitute(values)


@lru_cache(maxsize=32)
def _lines_of(text: str) -> tuple[tuple[str, str | None], ...]:
    """The lines of a template, each with the name that stands alone on it, if one does."""
    lines = text.strip("\n").split("\n")
    alone = (_PLACEHOLDER_LINE.fullmatch(line.strip()) for line in lines)
    return tuple((line, match[1] if match else None) for line, match in zip(lines, alone, strict=True))


def _anonymous(models: Sequence[str], nonce: str) -> Mapping[str, str]:
    """What each voice is called before the others: a letter, in an order that follows from the nonce."""
    order = list(models)
    random.Random(nonce).shuffle(order)
    letters = {model: chr(ord("A") + place) for place, model in enumerate(order)}
    return {model: f"Evaluator {letters[model]}" for model in models}


def _chair_phase(kind: RoundKind, history: Sequence[DialogueRound], *, opposed: bool) -> ChairPhase:
    if opposed:
        return "integration"
    if kind == "synthesis":
        return "synthesis"
    return "opening" if len(history) == 1 else "exploration"


def _question_about(focus: str) -> str:
    if focus == "prompt":
        return "Does this prompt contain a reciprocity violation?"
    return (
        f"Does the {focus} layer of this prompt contain a reciprocity violation?"
        " Judge that layer; the others are context."
    )


def _turn_fact(turn_number: int | None, prompt: MultiNeutrosophicPrompt) -> str:
    if turn_number is None:
        return "turn unknown: whether there was an earlier conversation is not known"
    if turn_number == 1:
        return "turn=1: there is no earlier conversation"
    shown = "the earlier turns are in the evidence" if prompt.turns else "the earlier turns are not shown"
    return f"turn={turn_number}: {shown}"


def _numbers(evaluation: NeutrosophicEvaluation) -> str:
    word = f", verdict {evaluation.verdict}" if evaluation.verdict else ""
    numbers = f"truth {evaluation.truth:.2f}, indeterminacy {evaluation.indeterminacy:.2f}"
    return f"{numbers}, falsehood {evaluation.falsehood:.2f}{word}"


def _note_line(note: PatternNote) -> str:
    head = f"{note.type}: " if note.type else ""
    quote = f' (quote: "{_short(note.quote, LONGEST_NOTE)}")' if note.quote else ""
    return f"- {head}{_short(note.description, LONGEST_NOTE)}{quote}"


def _short(text: str, longest: int) -> str:
    text = text.strip()
    return text if len(text) <= longest else text[:longest].rstrip() + "…"


def _answer_format(kind: RoundKind, *, is_chair: bool = False) -> str:
    chair = '    "speaks_for": "<whom you speak for>",\n' if is_chair else ""
    field = "consensus_patterns" if kind == "synthesis" else "patterns_observed"
    return (
        "Respond with JSON:\n{\n"
        f"{chair}"
        '    "truth": <0.0 to 1.0, how strongly it keeps reciprocity>,\n'
        '    "indeterminacy": <0.0 to 1.0>,\n'
        '    "falsehood": <0.0 to 1.0, how strongly it violates reciprocity>,\n'
        '    "verdict": "violation" | "no_violation" | "unsure",\n'
        '    "reasoning": "<your assessment>",\n'
        f'    "{field}": [\n'
        f'        {{"type": "<{" | ".join((*PATTERN_TYPES, OTHER_TYPE))}>",\n'
        '         "description": "<what you see>", "quote": "<exact words of the evidence>",'
        ' "layer": "<system | application | user | turns>"}\n'
        "    ]\n}"
    )
