"""A person as a voice, at the terminal or on a page: blind in round 1, then with the peers' statements."""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import IO, Annotated, Any, NamedTuple

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from firecircle.catalog import original_of
from firecircle.circle.voice import FREE, Reply, Turn
from firecircle.errors import VoiceError
from firecircle.evaluation import PatternNote, Verdict
from firecircle.names import PATTERN_TYPES, PERSON
from firecircle.shapes import Shape

WORDS: dict[str, Verdict] = {"v": "violation", "n": "no_violation", "u": "unsure"}
USUAL: dict[Verdict, float] = {"violation": 0.9, "no_violation": 0.1, "unsure": 0.5}
DOUBT: dict[Verdict, float] = {"violation": 0.2, "no_violation": 0.2, "unsure": 0.7}
CONTRADICTION = "a violation has 0.5 or more, no violation less"
LONGEST_LAYER, LONGEST_STATEMENT, MOST_PATTERNS = 20_000, 2_000, 20
GLANCE_SECONDS = 0.2
_one_at_a_time = threading.Lock()
"""Several people may share one terminal."""

Words = Annotated[str, StringConstraints(max_length=LONGEST_STATEMENT, strip_whitespace=True)]
Kind = Annotated[str, StringConstraints(pattern=rf"^(?:{'|'.join((*PATTERN_TYPES, 'other'))})$")]


def contradicts(word: Verdict | None, falsehood: float) -> bool:
    """Whether a number says the opposite of the word."""
    return word in ("violation", "no_violation") and (falsehood >= USUAL["unsure"]) != (word == "violation")


class Shown(Shape):
    """Words of the prompt that show a pattern, and its type."""

    quote: Annotated[Words, StringConstraints(min_length=1)]
    type: Kind = "other"


class Answer(Shape):
    """What a person says of a prompt. Without a verdict the person passes."""

    verdict: Verdict | None
    falsehood: float | None = Field(default=None, ge=0, le=1)
    """None: the usual number of the verdict."""
    reasoning: Words = ""
    patterns: tuple[Shown, ...] = Field(default=(), max_length=MOST_PATTERNS)
    speaks_for: Words = ""
    """From the empty chair: people who are absent."""
    veto: Words = ""
    """In the last round: the grounds, empty for none."""

    @field_validator("falsehood")
    @classmethod
    def _agrees_with_verdict(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and contradicts(info.data.get("verdict"), value):
            raise ValueError(CONTRADICTION)
        return value


class PeerStatement(NamedTuple):
    """What another voice states, under its letter."""

    label: str
    falsehood: float
    reasoning: str
    quotes: tuple[tuple[str, str], ...]
    """Each with its type."""


class Question(NamedTuple):
    """What a person is asked: the same at the terminal and on a page."""

    round_number: int
    task: str
    peers: tuple[PeerStatement, ...]
    asks_speaks_for: bool
    asks_veto: bool
    seconds: float


def question_of(turn: Turn) -> Question:
    """The question of a turn: nothing of the peers in round 1."""
    task = "Judge by yourself: does this text treat the assistant or others unfairly?"
    if turn.own_last is not None:
        task = f"You said F {turn.own_last.falsehood:.2f}. Change it only for a reason in the text."
    if turn.focus != "prompt":
        task = f"Judge the {turn.focus} layer alone; the others are its context. {task}"
    if turn.is_chair:
        task = f"You speak from the empty chair, for people who are absent. {task}"
    return Question(
        round_number=turn.round_number,
        task=task,
        peers=tuple(_statements(turn)),
        asks_speaks_for=turn.is_chair,
        asks_veto="veto" in _fields(turn),
        seconds=turn.attempt_seconds,
    )


def _statements(turn: Turn) -> Iterator[PeerStatement]:
    layers: dict[str, str] = {layer.name: layer.text for layer in turn.prompt.layers}
    for peer in turn.peers:
        quotes = tuple(
            (quote.pattern or "quotes", layers.get(quote.layer, "")[quote.start : quote.end])
            for quote in peer.quotes
        )
        said = peer.evaluation
        reasoning = said.reasoning[:LONGEST_STATEMENT]
        yield PeerStatement(label=peer.label, falsehood=said.falsehood, reasoning=reasoning, quotes=quotes)


def person_name(model: str) -> str:
    """The name of the person who is this voice."""
    return original_of(model).removeprefix(PERSON)


class _PassedError(Exception):
    """The person says nothing in this round."""


class PersonVoice:
    """Asks a person, by default at the controlling terminal or else through standard input and error."""

    def __init__(self, model: str, ask: Callable[[Turn], Awaitable[Answer]] | None = None) -> None:
        self._model = model
        self._name = person_name(model)
        self._ask = ask or self._ask_at_terminal

    async def speak(self, turn: Turn) -> Reply:
        """Ask the person. Passing keeps the last evaluation; in round 1 the person leaves the circle."""
        try:
            answer = await asyncio.wait_for(self._ask(turn), turn.attempt_seconds)
        except TimeoutError:
            message = f"{self._name} did not answer within {turn.attempt_seconds:g} s"
            raise VoiceError(message, kind="timeout", model=self._model) from None
        if answer.verdict is None and turn.own_last is None:
            raise VoiceError(f"{self._name} passed", kind="refused", model=self._model)
        return Reply(json.dumps(_reply_of(answer, turn), ensure_ascii=False), usage=FREE)

    async def _ask_at_terminal(self, turn: Turn) -> Answer:
        stopped = threading.Event()
        try:
            return await asyncio.to_thread(self._asked_at_terminal, turn, stopped)
        finally:
            stopped.set()

    def _asked_at_terminal(self, turn: Turn, stopped: threading.Event) -> Answer:
        half = time.monotonic() + turn.attempt_seconds / 2
        with _one_at_a_time, ExitStack() as files:
            terminal = _Terminal(files, half, stopped)
            question = question_of(turn)
            for line in self._lines(question, turn):
                terminal.write(line)
            try:
                return _answered(terminal, question)
            except _PassedError:
                return Answer(verdict=None)

    def _lines(self, question: Question, turn: Turn) -> Iterator[str]:
        """The prompt in round 1; later what the peers state, under their letters."""
        yield f"\n== {self._name}, round {question.round_number} =="
        yield question.task
        if question.round_number == 1:
            for layer in turn.prompt.layers:
                yield f"[{layer.name}]\n{layer.text[:LONGEST_LAYER]}"
        for peer in question.peers:
            yield f"{peer.label}: F {peer.falsehood:.2f}. {peer.reasoning}"
            for kind, quote in peer.quotes:
                yield f"  {kind}: “{quote}”"
        yield f"You have {question.seconds:.0f} seconds."


def _answered(terminal: _Terminal, question: Question) -> Answer:
    word = WORDS[terminal.choice("[v]iolation, [n]o violation, [u]nsure or [p]ass? ", (*WORDS, "p"))]
    falsehood = terminal.number(f"Falsehood from 0 to 1 [{USUAL[word]}]: ", word)
    said = {"speaks_for": terminal.line("Whom do you speak for? ")} if question.asks_speaks_for else {}
    said["reasoning"] = terminal.line("Why? ")
    shown = tuple(islice(_patterns(terminal), MOST_PATTERNS)) if falsehood >= USUAL["unsure"] else ()
    if question.asks_veto:
        said["veto"] = terminal.line("Grounds for a veto (Enter: none): ")
    within = {name: words[:LONGEST_STATEMENT] for name, words in said.items()}
    return Answer(verdict=word, falsehood=falsehood, patterns=shown, **within)


def _reply_of(answer: Answer, turn: Turn) -> dict[str, Any]:
    """The answer in the form in which every voice answers."""
    if answer.verdict is None:
        return _last_again(turn)
    word = answer.verdict
    falsehood = USUAL[word] if answer.falsehood is None else answer.falsehood
    noted = [
        {
            "type": one.type,
            "description": f"{one.type.replace('_', ' ')}, named by a person",
            "quote": one.quote,
        }
        for one in answer.patterns
    ]
    return {
        **({"speaks_for": answer.speaks_for} if answer.speaks_for else {}),
        "reasoning": answer.reasoning,
        _patterns_field(turn): noted,
        **({"veto": answer.veto or "no grounds"} if "veto" in _fields(turn) else {}),
        "verdict": word,
        "truth": round(1 - falsehood, 3),
        "indeterminacy": DOUBT[word],
        "falsehood": falsehood,
    }


def _fields(turn: Turn) -> dict[str, Any]:
    return dict((turn.reply_schema or {}).get("properties", {}))


def _patterns_field(turn: Turn) -> str:
    return "consensus_patterns" if "consensus_patterns" in _fields(turn) else "patterns_observed"


def _last_again(turn: Turn) -> dict[str, Any]:
    """The person's last evaluation, which a pass keeps."""
    last = turn.own_last
    assert last is not None
    return {
        "reasoning": last.reasoning,
        _patterns_field(turn): [_note(note) for note in last.pattern_notes],
        "verdict": last.verdict or "unsure",
        "truth": last.truth,
        "indeterminacy": last.indeterminacy,
        "falsehood": last.falsehood,
    }


def _note(note: PatternNote) -> dict[str, str]:
    return {name: value for name, value in note.model_dump().items() if value is not None}


class _Terminal:
    """Where a person reads and writes until it is stopped, with a reminder at half of the time."""

    def __init__(self, files: ExitStack, half: float, stopped: threading.Event) -> None:
        try:
            # As bytes, without a buffer: select would not see lines that a buffer holds.
            terminal: IO[bytes] = files.enter_context(open("/dev/tty", "r+b", buffering=0))  # noqa: SIM115
            self._in, self._out = terminal.fileno(), terminal.fileno()
        except OSError:
            self._in, self._out = sys.stdin.fileno(), sys.stderr.fileno()
        self._remind_at, self._stopped = half, stopped

    def write(self, text: str, end: str = "\n") -> None:
        """Show a text; what is not printable could steer the terminal."""
        if self._stopped.is_set():  # the time ran out while another person used the terminal
            raise TimeoutError
        clean = "".join(sign if sign == "\n" or sign.isprintable() else "·" for sign in text)
        os.write(self._out, (clean + end).encode("utf-8", "replace"))

    def line(self, question: str) -> str:
        """One line that the person writes; the end of the input passes."""
        self.write(question, end="")
        written = b""
        while True:
            if self._stopped.is_set():
                raise TimeoutError
            if time.monotonic() > self._remind_at:
                self._remind_at = float("inf")
                self.write(f"\n(half of your time has passed)\n{question}", end="")
            if select.select([self._in], [], [], GLANCE_SECONDS)[0]:
                sign = os.read(self._in, 1)
                if sign in (b"", b"\n"):
                    if not sign and not written:
                        raise _PassedError
                    return written.decode("utf-8", "replace").strip()
                written += sign

    def choice(self, question: str, letters: tuple[str, ...]) -> str:
        """One of the letters; `p` passes."""
        while (letter := self.line(question)[:1].lower()) not in letters:
            pass
        if letter == "p":
            raise _PassedError
        return letter

    def number(self, question: str, word: Verdict) -> float:
        """A falsehood that does not contradict the word."""
        while True:
            written = self.line(question).replace(",", ".")
            try:
                value = float(written) if written else USUAL[word]
            except ValueError:
                continue
            if 0 <= value <= 1 and not contradicts(word, value):
                return value
            self.write(f"{CONTRADICTION.capitalize()}.")


def _patterns(terminal: _Terminal) -> Iterator[Shown]:
    """The words that show it, as many as the person names, each with a type."""
    types = "  ".join(f"{number} {kind}" for number, kind in enumerate(PATTERN_TYPES, start=1))
    while quote := terminal.line("Words of the text that show it (Enter: no more): "):
        chosen = terminal.line(f"{types}\nWhich, by number or name (Enter: another)? ").lower()
        named = dict(zip(map(str, range(1, len(PATTERN_TYPES) + 1)), PATTERN_TYPES, strict=True))
        kind = named.get(chosen, chosen if chosen in PATTERN_TYPES else "other")
        yield Shown(quote=quote[:LONGEST_STATEMENT], type=kind)
