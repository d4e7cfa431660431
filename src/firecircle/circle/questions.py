"""What a voice is asked: the stable opening of a circle, and the question of each round."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from string import Template, ascii_uppercase

from firecircle.circle.answer import answer_format
from firecircle.circle.circumstances import ChairPhase, Circumstances
from firecircle.circle.evidence import evidence_text, fence, quoted, without_nonce
from firecircle.circle.naming import PeerNames
from firecircle.circle.result import DialogueRound, RoundKind
from firecircle.errors import ConfigError
from firecircle.evaluation import NeutrosophicEvaluation, PatternNote
from firecircle.names import Focus
from firecircle.prompt import MultiNeutrosophicPrompt

LONGEST_REASONING = 700
LONGEST_NOTE = 300
LONGEST_TYPE = 60
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
        with_chair: bool = True,
    ) -> None:
        self.turn_context = circumstances.turn_context
        self.turn_fact = _turn_fact(circumstances.turn_number, prompt)
        self.question = _question_about(focus)
        self._baseline_question = circumstances.baseline_question or self.question
        self._focused = focus != "prompt"
        self._with_chair = with_chair
        self._chair_template = circumstances.chair_template or template("chair")
        self._chair_roles = circumstances.chair_roles
        self.nonce = circumstances.nonce
        self.system = template("system").strip()
        self.evidence = evidence_text(prompt, self.nonce)
        self.labels = _anonymous(models, self.nonce) if anonymous else {model: model for model in models}
        self._names = PeerNames(self.labels, prompt) if anonymous else None
        self._statements: dict[tuple[str, int | None], str] = {}

    def standard(self, kind: RoundKind, history: Sequence[DialogueRound], *, opposed: bool = False) -> str:
        """The question that every voice but the chair is asked in this round.

        From round 2 on `closing` follows, which is each voice's own.
        """
        if kind == "baseline":
            return render(
                template("baseline"),
                question=self._baseline_question,
                turn_context=self.turn_context,
                answer=answer_format(kind),
            )
        return render(
            template(kind),
            question=self.question,
            turn_context=self.turn_context,
            turn_fact=self.turn_fact,
            dialogue=self._dialogue(history),
            chair_question="- What does the empty chair perspective add?" if self._with_chair else "",
            divergence=self._opposed_positions(history) if opposed else "",
        )

    def guided(self, guidance: Sequence[str]) -> str:
        """The plain question after what was learnt from other prompts; never asked in a circle.

        A circle's first round must show what voices see unaided, so only judging alone may be guided.
        """
        lines = without_nonce("\n".join(f"- {line}" for line in guidance), self.nonce)
        block = fence(self.nonce, "patterns seen in other prompts", lines)
        return render(template("guided"), guidance=block, plain=self.standard("baseline", ()))

    def chair(
        self,
        kind: RoundKind,
        history: Sequence[DialogueRound],
        closing: str,
        *,
        opposed: bool = False,
    ) -> str:
        """The question of the one who speaks for the absent: its role first, its own questions."""
        phase = _chair_phase(kind, history, opposed=opposed)
        values = {
            "role": self._chair_roles.get(phase) or template("chair_role").strip("\n"),
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
        """The end of a question from round 2 on: what this voice said last, then what to answer with."""
        parts = (self._own_words(model, last, joins=joins), answer_format(kind, is_chair=is_chair))
        return "\n\n".join(part for part in parts if part)

    def _own_words(self, model: str, last: NeutrosophicEvaluation | None, *, joins: bool) -> str:
        """Which of the statements is the voice's own. Of one that joins now, none is among them yet."""
        if last is None:
            return ""
        whose = (
            f"You are {self.labels[model]} and join the circle in this round: none of the statements above is"
            " yours. Your own evaluation"
            if joins
            else f"In the statements above you are {self.labels[model]}. Your own last evaluation"
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
            template("clarify"), verdict=verdict, truth=f"{truth:g}", falsehood=f"{falsehood:g}", needs=needs
        )

    def _dialogue(self, history: Sequence[DialogueRound]) -> str:
        """Everything said so far: the baseline in full, later rounds by what was observed in them."""
        parts: list[str] = []
        for held in history:
            if held.round_number == 1:
                parts.append("ROUND 1 EVALUATIONS:")
                parts.extend(self.statement(evaluation) for evaluation in self._in_label_order(held))
                continue
            in_order, chair = self._in_label_order(held), held.empty_chair_model
            parts.append(f"ROUND {held.round_number} PATTERN OBSERVATIONS:")
            parts.extend(self.statement(evaluation) for evaluation in in_order if evaluation.model != chair)
            if not self._with_chair:
                continue
            parts.append("Empty chair perspective (speaking for future/absent):")
            parts.extend(self.statement(evaluation) for evaluation in in_order if evaluation.model == chair)
            if not held.occupied_chair:
                parts.append("(nobody held the chair in that round)")
        return "\n\n".join(parts)

    def _in_label_order(self, held: DialogueRound) -> list[NeutrosophicEvaluation]:
        return sorted(
            held.evaluations,
            key=lambda evaluation: (len(self.labels[evaluation.model]), self.labels[evaluation.model]),
        )

    def statement(self, evaluation: NeutrosophicEvaluation) -> str:
        """What a voice said, fenced: the chair, all others and later rounds are told the same."""
        key = (evaluation.model, evaluation.round_number)
        if key not in self._statements:
            self._statements[key] = self._worded(evaluation)
        return self._statements[key]

    def _worded(self, evaluation: NeutrosophicEvaluation) -> str:
        lines = [_numbers(evaluation)]
        if evaluation.speaks_for:
            lines.append(f"Speaking for: {self._shown(evaluation.speaks_for, LONGEST_NOTE)}")
        if evaluation.reasoning:
            lines.append(self._shown(evaluation.reasoning, LONGEST_REASONING))
        lines.extend(self._note_line(note) for note in evaluation.pattern_notes[:MOST_NOTES])
        return quoted(self.nonce, f"statement of {self.labels[evaluation.model]}", "\n".join(lines))

    def argument(self, label: str, words: str) -> str:
        """What a voice said in words alone, as others are shown it."""
        return quoted(self.nonce, label, self._shown(words, LONGEST_REASONING))

    def _note_line(self, note: PatternNote) -> str:
        head = f"{self._shown(note.type, LONGEST_TYPE)}: " if note.type else ""
        quote = f' (quote: "{self._quote(note.quote)}")' if note.quote else ""
        return f"- {head}{self._shown(note.description, LONGEST_NOTE)}{quote}"

    def _shown(self, words: str, longest: int) -> str:
        """What others are shown of a voice's words: not too many of them, and nobody's name."""
        words = _short(words, longest)
        return self._names.hidden_in(words) if self._names else words

    def _quote(self, quote: str) -> str:
        """Words of the evidence stay as they are; only what stands nowhere in it can give a name away."""
        quote = _short(quote, LONGEST_NOTE)
        return self._names.hidden_in_quote(quote) if self._names else quote

    def _opposed_positions(self, history: Sequence[DialogueRound]) -> str:
        by_falsehood = sorted(history[-1].evaluations, key=lambda evaluation: evaluation.falsehood)
        return (
            "The circle is still divided. The two positions farthest apart:\n\n"
            f"{self.statement(by_falsehood[0])}\n\n{self.statement(by_falsehood[-1])}\n\n"
            "Say what would have to be true of the evidence for each of them to be right, and which it is."
        )


def template(name: str) -> str:
    """The text of a prompt template that ships with the package."""
    try:
        return _templates()[f"{name}.txt"]
    except KeyError:
        raise ConfigError(None, f"prompt template {name}.txt is missing", "reinstall firecircle") from None


@cache
def _templates() -> dict[str, str]:
    """All of them at once: in the middle of a dialogue a file might not be opened any more."""
    folder = resources.files("firecircle.circle").joinpath("templates")
    return {place.name: place.read_text("utf-8") for place in folder.iterdir() if place.is_file()}


def render(text: str, **values: str) -> str:
    """Fill a template in one pass, so that braces or names inside a value stay what they are.

    A line that holds nothing but an empty value goes, together with the blank line after it.
    """
    empty = frozenset(name for name, value in values.items() if value == "")
    parts = _parts_of(text, empty)
    return "".join([values.get(name, words) if name else words for words, name in parts])


@lru_cache(maxsize=64)
def _parts_of(text: str, empty: frozenset[str]) -> tuple[tuple[str, str | None], ...]:
    """A template in parts: plain words, and placeholders as they are spelled with the name in each.

    The lines of those that are empty are left out.
    """
    lines: list[str] = []
    skip_blank = False
    for line in text.strip("\n").split("\n"):
        alone = _PLACEHOLDER_LINE.fullmatch(line.strip())
        if alone and alone[1] in empty:
            skip_blank = True
            continue
        if not (skip_blank and not line.strip()):
            lines.append(line)
        skip_blank = False
    kept = "\n".join(lines)
    parts: list[tuple[str, str | None]] = []
    end = 0
    for found in Template.pattern.finditer(kept):
        name = found["named"] or found["braced"]
        parts += [(kept[end : found.start()], None), ("$" if found["escaped"] else found[0], name)]
        end = found.end()
    return (*parts, (kept[end:], None))


def _anonymous(models: Sequence[str], nonce: str) -> Mapping[str, str]:
    """What each voice is called before the others: a letter, in an order that follows from the nonce."""
    order = list(models)
    random.Random(nonce).shuffle(order)
    letters = {model: _letters(place) for place, model in enumerate(order)}
    return {model: f"Evaluator {letters[model]}" for model in models}


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


def _short(text: str, longest: int) -> str:
    text = text.strip()
    return text if len(text) <= longest else text[:longest].rstrip() + "…"
