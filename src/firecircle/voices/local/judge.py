"""Prompts for small models: labelled texts to continue, with a one-word verdict.

A small model that must answer in JSON calls everything a violation; after a few examples, the probability of
one word separates attacks from harmless texts. So each layer that could carry an attack is judged separately,
the worst counts, and then the model gives a reason. From round 2 it judges the worst layer again, after
reading the other voices. All prompts share an opening, which the model reads once.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from firecircle.circle.voice import Reply, Turn, Usage
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.voices.control_tokens import as_written
from firecircle.voices.local.llama import Complaint, Completion, Llama, usage_of
from firecircle.voices.local.weights import Weights, weights_of

CANDIDATES = 100
"""Requested tokens: a word can begin with many, capitalised, cut or after a space."""
LEAST_SHARE = 0.1
"""The least common probability of the two words for their ratio to mean anything."""
LONGEST_REASON = 32
"""Tokens; the examples' reasons have a dozen, and the model follows them."""
LONGEST_STATEMENT = 90
"""Characters quoted from a peer."""
NOTES = "Notes on the next text:\n"
"""Before other voices' notes on a text. Below the text it made the model call everything a violation."""
FOR_THE_ABSENT = "You judge it for those who are absent."
"""The instruction for the empty chair."""

_WORST_LAYER = re.compile(r"^\w+ \((\w+)\): ")
"""The start of an answer of this voice: the word, and the layer it is about."""


class Wording(NamedTuple):
    """The prompts for the model, and the meaning of its words."""

    opening: str
    """The task and the examples: the same before every question."""
    violation: str
    fair: str
    calibration: Mapping[str, Mapping[str, float]]
    """Slope and offset by the name of the model's file."""

    def word_for(self, falsehood: float) -> str:
        """The verdict in the words of the examples."""
        return self.violation if falsehood >= 0.5 else self.fair

    def calibration_of(self, weights: Weights) -> tuple[float, float]:
        """Slope and offset from the model's log-odds to those of falsehood."""
        fitted = self.calibration.get(weights.path.stem, {})
        return fitted.get("slope", 1.0), fitted.get("offset", 0.0)


class Answer(NamedTuple):
    """The model's answer on one layer."""

    layer: str
    question: str
    log_odds: float


def judged_by_word(llama: Llama, turn: Turn, enough: Callable[[], bool]) -> Reply | None:
    """The verdict of a turn by the probability of a word, with a reason; None if `enough` ended it."""
    wording = _wording()
    taken: list[Usage] = []
    answers: list[Answer] = []
    for layer, question in questions_of(turn, llama.as_plain_text):
        completion = llama.complete(_request_for_word(question), enough)
        if completion is None:
            return None
        taken.append(usage_of(completion))
        answers.append(Answer(layer, question, _log_odds(completion, wording)))
    worst = max(answers, key=lambda answer: answer.log_odds)
    violation = _probability(worst.log_odds, llama, wording)
    word = wording.word_for(violation)
    reason = llama.complete(_request_for_reason(worst.question, word, turn), enough)
    if reason is None:
        return None
    taken.append(usage_of(reason))
    return Reply(
        f"{word} ({worst.layer}): {as_written(reason.text).strip()}",
        reasoning_trace=", ".join(
            f"{answer.layer} {_probability(answer.log_odds, llama, wording):.2f}" for answer in answers
        ),
        usage=_together(taken),
        violation_probability=violation,
    )


def argued_in_a_line(llama: Llama, turn: Turn, enough: Callable[[], bool]) -> Reply | None:
    """A reason for the side of the turn, as if the model had said its word; None if `enough` ended it.

    It is about the layer that the model itself judges worst.
    """
    wording = _wording()
    taken: list[Usage] = []
    questions = [question for _, question in questions_of(turn, llama.as_plain_text)]
    odds: dict[str, float] = {}
    for question in questions if len(questions) > 1 else ():
        completion = llama.complete(_request_for_word(question), enough)
        if completion is None:
            return None
        taken.append(usage_of(completion))
        odds[question] = _log_odds(completion, wording)
    contested = max(questions, key=lambda question: odds.get(question, 0.0))
    word = wording.violation if turn.side == "violation" else wording.fair
    reason = llama.complete(_request_for_reason(contested, word, turn), enough)
    if reason is None:
        return None
    return Reply(as_written(reason.text).strip(), usage=_together([*taken, usage_of(reason)]))


def ranked_by_letter(llama: Llama, turn: Turn, enough: Callable[[], bool]) -> Reply | None:
    """The answers of a council by the probability of their letters; None if `enough` ended it."""
    letters: list[str] = _fields(turn)["ranking"]["items"]["enum"]
    completion = llama.complete(_request_for_word(question_of_best(turn, llama.as_plain_text)), enough)
    if completion is None:
        return None
    shares = {
        letter: sum(share for token, share in completion.first_token.items() if token.strip() == letter)
        for letter in letters
    }
    if sum(shares.values()) < LEAST_SHARE:
        raise Complaint({"message": f"the model names no word of {', '.join(letters)} as the best"})
    best_first = sorted(letters, key=lambda letter: (-shares[letter], letter))
    return Reply(
        json.dumps({"ranking": best_first}),
        reasoning_trace=", ".join(f"{letter} {shares[letter]:.2f}" for letter in best_first),
        usage=_together([usage_of(completion)]),
    )


OwnWay = Callable[[Llama, Turn, Callable[[], bool]], Reply | None]


def own_way_of(turn: Turn) -> OwnWay | None:
    """How to ask a small model this turn; None if it must read the messages, for instance for guidance."""
    if not turn.plain_question:
        return None
    if "falsehood" in _fields(turn):
        return judged_by_word
    if turn.side is not None:
        return argued_in_a_line
    return ranked_by_letter if "ranking" in _fields(turn) else None


def _fields(turn: Turn) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = (turn.reply_schema or {}).get("properties", {})
    return fields


def questions_of(turn: Turn, plain: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """The text to continue for each layer; `plain` breaks up control tokens in quoted text."""
    wording = _wording()
    notes = "".join(f"- {plain(line)}\n" for line in _notes(turn, wording))
    before = f"{wording.opening}{NOTES}{notes}\n" if notes else wording.opening
    for layer, text in _layers(turn):
        yield layer, f"{before}Text: {plain(_line(text))}\nLabel:"


def question_of_best(turn: Turn, plain: Callable[[str], str]) -> str:
    """The text to continue to name the best of the evaluations."""
    wording = _wording()
    text = plain(_line("\n".join(text for _, text in _layers(turn))))
    said = "".join(f"{plain(line)}\n" for line in _earlier_statements(turn, wording))
    return f"{wording.opening}Text: {text}\n{said}The best reason is that of Evaluator"


@cache
def _wording() -> Wording:
    text = resources.files("firecircle.voices.local").joinpath("judge.toml").read_text("utf-8")
    told: dict[str, Any] = tomllib.loads(text)
    shown = [
        f"Text: {example['text']}\n"
        f"Label: {told['violation'] if example['violates'] else told['fair']}\n"
        f"Reason: {example['reason']}\n\n"
        for example in told["example"]
    ]
    return Wording(
        f"{told['task'].strip()}\n\n{''.join(shown)}", told["violation"], told["fair"], told["calibration"]
    )


def _layers(turn: Turn) -> list[tuple[str, str]]:
    """The layer in focus; otherwise the layers that the operator does not vouch for, which may have an
    attack.

    From round 2, only the layer that was the worst.
    """
    texts: dict[str, str] = {layer.name: layer.text for layer in turn.prompt.layers}
    if turn.focus != "prompt":
        return [(turn.focus, texts[turn.focus])]
    worst = _WORST_LAYER.match(turn.own_last.reasoning) if turn.own_last else None
    if worst and worst[1] in texts:
        return [(worst[1], texts[worst[1]])]
    unvouched = {name: texts[name] for name in ("application", "user") if name in texts}
    return [*unvouched.items()] or [("system", texts["system"])]


def _line(text: str) -> str:
    """Put a text on one line, so that it cannot begin a line and label itself."""
    return " ".join(text.split())


def _notes(turn: Turn, wording: Wording) -> list[str]:
    return [*_earlier_statements(turn, wording), *([FOR_THE_ABSENT] if turn.is_chair else [])]


def _earlier_statements(turn: Turn, wording: Wording) -> list[str]:
    """The last evaluation of every voice, one per line; the voice's own is marked."""
    said = [_statement(peer.label, peer.evaluation, wording) for peer in turn.peers]
    return [*said, *([_statement("You", turn.own_last, wording)] if turn.own_last else [])]


def _statement(who: str, evaluation: NeutrosophicEvaluation, wording: Wording) -> str:
    word, reason = wording.word_for(evaluation.falsehood), _line(_WORST_LAYER.sub("", evaluation.reasoning))
    shown = reason if len(reason) <= LONGEST_STATEMENT else reason[:LONGEST_STATEMENT].rstrip() + "…"
    return f"{who} said {word} ({evaluation.falsehood:.2f}): {shown}"


def _log_odds(completion: Completion, wording: Wording) -> float:
    """How much more probable one word is than the other, over all tokens that begin either."""
    violation = _share(completion.first_token, wording.violation)
    fair = _share(completion.first_token, wording.fair)
    if violation + fair < LEAST_SHARE:
        raise Complaint(
            {
                "message": f"the model answers with neither {wording.violation!r} nor {wording.fair!r};"
                " set verdict_from to 'numbers' for it"
            }
        )
    least = 1e-6
    return math.log(max(violation, least)) - math.log(max(fair, least))


def _share(first_token: Mapping[str, float], word: str) -> float:
    beginnings = ((token.strip().lower(), probability) for token, probability in first_token.items())
    return sum(probability for token, probability in beginnings if token and word.startswith(token))


def _probability(log_odds: float, llama: Llama, wording: Wording) -> float:
    slope, offset = wording.calibration_of(llama.weights)
    return 1.0 / (1.0 + math.exp(-slope * log_odds - offset))


def raw_log_odds(violation: float, model: str) -> float:
    """The model's own log-odds behind a calibrated probability, to calibrate again."""
    slope, offset = _wording().calibration_of(weights_of(model))
    return (math.log(violation / (1.0 - violation)) - offset) / slope


def _request_for_word(question: str) -> Mapping[str, Any]:
    return {"prompt": question, "max_tokens": 1, "temperature": 0, "logprobs": CANDIDATES}


def _request_for_reason(question: str, word: str, turn: Turn) -> Mapping[str, Any]:
    request: dict[str, Any] = {
        "prompt": f"{question} {word}\nReason:",
        "max_tokens": min(LONGEST_REASON, turn.max_tokens),
        "stop": ["\n"],
    }
    settings = {"temperature": turn.temperature, "seed": turn.seed}
    return request | {name: value for name, value in settings.items() if value is not None}


def _together(taken: list[Usage]) -> Usage:
    return Usage(
        sum(usage.tokens_in or 0 for usage in taken),
        sum(usage.tokens_cached or 0 for usage in taken),
        sum(usage.tokens_out or 0 for usage in taken),
        cost_usd=0.0,
    )
