"""Voices that are language models in this process. Voices of the same file share one engine."""

from __future__ import annotations

import asyncio
import atexit
import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from firecircle.circle.voice import Message, Reply, Turn, Usage
from firecircle.errors import VoiceError
from firecircle.voices.control_tokens import as_written
from firecircle.voices.hosted.prices import FREE
from firecircle.voices.local.judge import LONGEST_REASON, own_way_of, questions_of
from firecircle.voices.local.llama import SLOTS, CannotLoad, Complaint, Llama, require_library, usage_of
from firecircle.voices.local.weights import Weights, weights_of
from firecircle.voices.rehearsal import estimated_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from firecircle.circle.base_config import VerdictSource


class Engine:
    """A model file, loaded on first use and unloaded when the process ends."""

    def __init__(self, weights: Weights) -> None:
        self.worker = ThreadPoolExecutor(SLOTS, thread_name_prefix=f"firecircle-{weights.name}")
        """As many threads as the engine answers at once; later calls wait in its queue. They end before the
        interpreter does, because the library aborts a process that exits during a call.
        """
        self._weights = weights
        self._llama: Llama | None = None
        self._loading = threading.Lock()

    def llama(self) -> Llama:
        """The loaded model. Blocks while it is loading."""
        with self._loading:
            if self._llama is None:
                # Only the engine itself uses the port, so the key is not passed on.
                self._llama = Llama(self._weights, key=secrets.token_hex(16))
                atexit.register(self._llama.close)
            return self._llama


SHORTEST_REASON = 40
MOST_ITEMS, TOKENS_AN_ITEM = 4, 150
"""Limits of an answer for a model of this size: patterns, and tokens for each."""


class LocalVoice:
    """A model in this process, with its own prompts or those of every voice."""

    def __init__(self, model: str, engine: Engine, *, by_word: bool) -> None:
        self.model = model
        self._engine = engine
        self._by_word = by_word

    def estimate(self, turn: Turn) -> Usage:
        """The most that answering the turn may consume."""
        return local_estimate(turn, by_word=self._by_word)

    async def speak(self, turn: Turn) -> Reply:
        """Answer the turn in the engine's thread; when cancelled, the engine stops at its next chunk."""
        left = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._engine.worker, self._answer, turn, left.is_set)
        finally:
            left.set()

    def _answer(self, turn: Turn, nobody_waits: Callable[[], bool]) -> Reply:
        try:
            llama = self._engine.llama()
            late = time.monotonic() + turn.attempt_seconds
            answer = (own_way_of(turn) if self._by_word else None) or _answer_question
            reply = answer(
                llama, self._with_own_seed(turn), lambda: nobody_waits() or time.monotonic() > late
            )
        except CannotLoad as broken:
            raise VoiceError(str(broken), kind="raised", model=self.model) from None
        except Complaint as complaint:
            raise VoiceError(_explain(complaint), kind="raised", model=self.model) from None
        if reply is None:
            raise VoiceError(
                f"no complete answer within {turn.attempt_seconds:.3g} s", kind="timeout", model=self.model
            )
        return reply

    def _with_own_seed(self, turn: Turn) -> Turn:
        """The turn with this voice's own seed: a clone with the same seed would only repeat it."""
        _, _, clone = self.model.rpartition("#")
        if turn.seed is None or not clone.isdecimal():
            return turn
        return turn._replace(seed=turn.seed + int(clone) - 1)


_engines: dict[Path, Engine] = {}
_finding = threading.Lock()


def local_voice(model: str, verdict_from: VerdictSource = "auto") -> LocalVoice:
    """The voice of `local:qwen` or `local:/path/to/model.gguf`; a `ConfigError` if unavailable."""
    require_library()
    weights = weights_of(model)
    with _finding:
        engine = _engines.get(weights.path)
        if engine is None:
            engine = _engines[weights.path] = Engine(weights)
    return LocalVoice(model, engine, by_word=verdict_from != "numbers")


def local_estimate(turn: Turn, *, by_word: bool) -> Usage:
    """The most that answering a turn may consume, for any local model."""
    if not (by_word and own_way_of(turn)):
        return estimated_usage(turn, FREE)
    questions = tuple(Message("user", question) for _, question in questions_of(turn, str))
    shown = turn._replace(messages=questions, reply_schema=None, max_tokens=LONGEST_REASON)
    return estimated_usage(shown, FREE)


def _answer_question(llama: Llama, turn: Turn, enough: Callable[[], bool]) -> Reply | None:
    """The answer to the circle's own question; None if `enough` ended it early."""
    completion = llama.chat(_request(turn, llama.as_plain_text), enough)
    if completion is None:
        return None
    return Reply(
        as_written(completion.text),
        completion.thoughts,
        usage_of(completion),
        finished=completion.finish == "stop",
        cut_short=completion.finish == "length",
    )


def _request(turn: Turn, plain: Callable[[str], str]) -> Mapping[str, Any]:
    request: dict[str, Any] = {
        "messages": [{"role": said.role, "content": plain(said.content)} for said in turn.messages],
        "max_tokens": turn.max_tokens,
    }
    if turn.temperature is not None:
        request["temperature"] = turn.temperature
    if turn.seed is not None:
        request["seed"] = turn.seed
    if turn.reply_schema is not None:
        request["json_schema"] = _with_room_for_numbers(turn.reply_schema, turn.max_tokens)
    return request


def _explain(complaint: Complaint) -> str:
    if complaint.tokens_asked is None:
        return str(complaint)
    return (
        f"the question has {complaint.tokens_asked} tokens and this model reads {complaint.tokens_possible};"
        " shorten the prompt, or serve a model that reads more and name it llamacpp:…"
    )


def _with_room_for_numbers(schema: Mapping[str, Any], max_tokens: int) -> dict[str, Any]:
    """The schema with limited reasons and lists: a small model that rambles must still reach its numbers."""
    if "properties" not in schema:
        return dict(schema)
    fields = dict(schema["properties"])
    for name, field in fields.items():
        if field.get("type") == "string" and "enum" not in field:
            fields[name] = {**field, "maxLength": max(SHORTEST_REASON, max_tokens)}
        elif field.get("items", {}).get("type") == "object":
            fields[name] = {**field, "maxItems": min(MOST_ITEMS, max_tokens // TOKENS_AN_ITEM)}
    return {**schema, "properties": fields}
