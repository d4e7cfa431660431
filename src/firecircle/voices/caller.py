"""Any function that answers messages, as a voice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from firecircle.circle.voice import Reply, Turn
from firecircle.errors import VoiceError

Answer = str | tuple[str, str | None]
Caller = Callable[[str, list[dict[str, str]]], Awaitable[Answer]]
"""`async (model, messages) -> text` or `-> (text, reasoning_trace)`; what it raises is its failure."""


class CallerVoice:
    """A voice that asks the user's own function."""

    def __init__(self, model: str, caller: Caller) -> None:
        self._model = model
        self._caller = caller

    async def speak(self, turn: Turn) -> Reply:
        """Hand the messages over and take what comes back: a caller's text is complete by definition."""
        sent = [{"role": message.role, "content": message.content} for message in turn.messages]
        try:
            async with asyncio.timeout(turn.attempt_seconds) as limit:
                text, trace = _answer_of(await _awaited(self._caller(self._model, sent)))
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"no answer within timeout_seconds={turn.attempt_seconds:g}"
            raise VoiceError(message, kind="timeout", model=self._model) from None
        return Reply(text, reasoning_trace=trace, finished=True)


async def _awaited(answer: object) -> object:
    if not isinstance(answer, Awaitable):
        raise TypeError(f"the caller must be async: it returned {type(answer).__name__}, not an awaitable")
    return await answer


def _answer_of(answer: object) -> tuple[str, str | None]:
    match answer:
        case str():
            return answer, None
        case (str() as text, (str() | None) as trace):
            return text, trace
    raise TypeError(f"the caller must return text or (text, reasoning_trace), got {type(answer).__name__}")
