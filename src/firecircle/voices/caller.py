"""A user's function as a voice."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial

from firecircle.circle.voice import Reply, Turn
from firecircle.errors import ConfigError, VoiceError

Answer = str | tuple[str, str | None]
Caller = Callable[[str, list[dict[str, str]]], Awaitable[Answer] | Answer]
"""`async (model, messages) -> text` or `-> (text, reasoning_trace)`; what it raises is its failure.

A function that is not async is called in a thread, several at once.
"""


def require_caller(caller: Caller) -> None:
    """Refuse what cannot be called with a model and messages, before any voice is asked."""
    if not callable(caller):
        raise ConfigError("caller", f"{type(caller).__name__} is not a function", "pass (model, messages)")
    try:
        inspect.signature(caller).bind("model", [])
    except TypeError:
        raise ConfigError("caller", "it does not take (model, messages)", "give it these two") from None
    except ValueError:
        pass  # a builtin without a signature


def _is_async(caller: object) -> bool:
    while isinstance(caller, partial):
        caller = caller.func
    called = getattr(type(caller), "__call__", None)  # noqa: B004 - of an object with an async __call__
    return inspect.iscoroutinefunction(caller) or inspect.iscoroutinefunction(called)


class CallerVoice:
    """A voice that calls the user's function."""

    def __init__(self, model: str, caller: Caller) -> None:
        self._model = model
        self._caller = caller
        self._is_async = _is_async(caller)

    async def speak(self, turn: Turn) -> Reply:
        """Call the function; its text counts as complete."""
        sent = [{"role": message.role, "content": message.content} for message in turn.messages]
        try:
            async with asyncio.timeout(turn.attempt_seconds) as limit:
                text, trace = _answer_of(await self._ask(sent))
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"no answer within timeout_seconds={turn.attempt_seconds:g}"
            raise VoiceError(message, kind="timeout", model=self._model) from None
        return Reply(text, reasoning_trace=trace, finished=True)

    async def _ask(self, sent: list[dict[str, str]]) -> object:
        if self._is_async:
            answer: object = self._caller(self._model, sent)
        else:  # a plain function would block all other voices, and no deadline could end it
            answer = await asyncio.to_thread(self._caller, self._model, sent)
        return await answer if isinstance(answer, Awaitable) else answer


def _answer_of(answer: object) -> tuple[str, str | None]:
    match answer:
        case str():
            return answer, None
        case (str() as text, (str() | None) as trace):
            return text, trace
    raise TypeError(f"the caller must return text or (text, reasoning_trace), got {type(answer).__name__}")
