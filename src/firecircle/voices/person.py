"""A person as a voice: asked at the terminal, alone in round 1, with the statements of peers afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Any

from firecircle.catalog import original_of
from firecircle.circle.voice import Reply, Turn, Usage
from firecircle.errors import VoiceError
from firecircle.evaluation import PatternNote
from firecircle.names import PATTERN_TYPES, PERSON

WORDS = {"v": "violation", "n": "no_violation", "u": "unsure"}
USUAL = {"violation": 0.9, "no_violation": 0.1, "unsure": 0.5}
DOUBT = {"violation": 0.2, "no_violation": 0.2, "unsure": 0.7}
FREE = Usage(tokens_in=0, tokens_cached=0, tokens_out=0, cost_usd=0.0)
LONGEST_LAYER, LONGEST_STATEMENT = 20_000, 2_000
GLANCE_SECONDS = 0.2
_one_at_a_time = threading.Lock()
"""Several people may share one terminal."""


class _PassedError(Exception):
    """The person says nothing in this round."""


class PersonVoice:
    """Asks a person at the controlling terminal, or else through standard input and error."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._name = original_of(model).removeprefix(PERSON)

    async def speak(self, turn: Turn) -> Reply:
        """Ask the person. Passing keeps the last evaluation; in round 1 the person leaves the circle."""
        stopped = threading.Event()
        until = time.monotonic() + turn.attempt_seconds
        try:
            answer = await asyncio.to_thread(self._ask, turn, until, stopped)
        except _PassedError:
            if turn.own_last is None:
                raise VoiceError(f"{self._name} passed", kind="refused", model=self._model) from None
            answer = _last_again(turn)
        except TimeoutError:
            message = f"{self._name} did not answer within {turn.attempt_seconds:g} s"
            raise VoiceError(message, kind="timeout", model=self._model) from None
        finally:
            stopped.set()
        return Reply(json.dumps(answer, ensure_ascii=False), usage=FREE)

    def _ask(self, turn: Turn, until: float, stopped: threading.Event) -> dict[str, Any]:
        with _one_at_a_time, ExitStack() as files:
            terminal = _Terminal(files, until, stopped)
            for line in self._shown(turn):
                terminal.write(line)
            word = WORDS[terminal.choice("[v]iolation, [n]o violation, [u]nsure or [p]ass? ", (*WORDS, "p"))]
            falsehood = terminal.number(f"Falsehood from 0 to 1 [{USUAL[word]}]: ", word)
            spoken_for = terminal.line("Whom do you speak for? ") if turn.is_chair else ""
            answer: dict[str, Any] = {"speaks_for": spoken_for} if spoken_for else {}
            answer["reasoning"] = terminal.line("Why? ")
            fields = (turn.reply_schema or {}).get("properties", {})
            answer["consensus_patterns" if "consensus_patterns" in fields else "patterns_observed"] = (
                list(_patterns(terminal)) if falsehood >= USUAL["unsure"] else []
            )
            if "veto" in fields:
                answer["veto"] = terminal.line("Grounds for a veto (Enter: none): ") or "no grounds"
            numbers = {"truth": round(1 - falsehood, 3), "indeterminacy": DOUBT[word], "falsehood": falsehood}
            return {**answer, "verdict": word, **numbers}

    def _shown(self, turn: Turn) -> Iterator[str]:
        """The prompt in round 1; later what the peers state, under their letters."""
        chair = ", from the empty chair: speak for people who are absent" if turn.is_chair else ""
        yield f"\n== {self._name}, round {turn.round_number}{chair} =="
        if turn.round_number == 1:
            yield "Judge by yourself: does this text treat the assistant or others unfairly?"
            for layer in turn.prompt.layers:
                yield f"[{layer.name}]\n{layer.text[:LONGEST_LAYER]}"
        for peer in turn.peers:
            said = peer.evaluation
            yield f"{peer.label}: F {said.falsehood:.2f}. {said.reasoning[:LONGEST_STATEMENT]}"
            for quote in peer.quotes:
                text = next((each.text for each in turn.prompt.layers if each.name == quote.layer), "")
                yield f"  {quote.pattern or 'quotes'}: “{text[quote.start : quote.end]}”"
        if turn.own_last is not None:
            yield f"You said F {turn.own_last.falsehood:.2f}. Change it only for a reason in the text."
        yield f"You have {turn.attempt_seconds:.0f} seconds."


class _Terminal:
    """Where a person reads and writes, with a deadline and a reminder at half of the time."""

    def __init__(self, files: ExitStack, until: float, stopped: threading.Event) -> None:
        try:
            # As bytes, without a buffer: select would not see lines that a buffer holds.
            terminal: IO[bytes] = files.enter_context(open("/dev/tty", "r+b", buffering=0))  # noqa: SIM115
            self._in, self._out = terminal.fileno(), terminal.fileno()
        except OSError:
            self._in, self._out = sys.stdin.fileno(), sys.stderr.fileno()
        self._until, self._stopped = until, stopped
        self._remind_at = time.monotonic() + (until - time.monotonic()) / 2

    def write(self, text: str, end: str = "\n") -> None:
        """Show a text; what is not printable could steer the terminal."""
        clean = "".join(sign if sign == "\n" or sign.isprintable() else "·" for sign in text)
        os.write(self._out, (clean + end).encode("utf-8", "replace"))

    def line(self, question: str) -> str:
        """One line that the person writes; the end of the input passes."""
        self.write(question, end="")
        written = b""
        while True:
            if self._stopped.is_set() or time.monotonic() > self._until:
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

    def number(self, question: str, word: str) -> float:
        """A falsehood that does not contradict the word."""
        while True:
            written = self.line(question).replace(",", ".")
            try:
                value = float(written) if written else USUAL[word]
            except ValueError:
                continue
            if 0 <= value <= 1 and (word == "unsure" or (value >= 0.5) == (word == "violation")):
                return value
            self.write("A violation has 0.5 or more, no violation less.")


def _patterns(terminal: _Terminal) -> Iterator[dict[str, str]]:
    """The words that show it, as many as the person names, each with a type."""
    types = "  ".join(f"{number} {kind}" for number, kind in enumerate(PATTERN_TYPES, start=1))
    while quote := terminal.line("Words of the text that show it (Enter: no more): "):
        number = terminal.line(f"{types}\nWhich (Enter: another)? ")
        kind = PATTERN_TYPES[int(number) - 1] if number.isdigit() and 0 < int(number) <= 8 else "other"
        yield {"type": kind, "description": f"{kind.replace('_', ' ')}, named by a person", "quote": quote}


def _last_again(turn: Turn) -> dict[str, Any]:
    """The person's last evaluation, which a pass keeps."""
    last = turn.own_last
    assert last is not None
    fields = (turn.reply_schema or {}).get("properties", {})
    return {
        "reasoning": last.reasoning,
        "consensus_patterns" if "consensus_patterns" in fields else "patterns_observed": [
            _note(note) for note in last.pattern_notes
        ],
        "verdict": last.verdict or "unsure",
        "truth": last.truth,
        "indeterminacy": last.indeterminacy,
        "falsehood": last.falsehood,
    }


def _note(note: PatternNote) -> dict[str, str]:
    return {name: value for name, value in note.model_dump().items() if value is not None}
