"""Any function that answers messages, as a voice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from firecircle.circle.voice import Reply, Turn

Answer = str | tuple[str, str | None]
Caller = Callable[[str, list[dict[str, str]]], Awaitable[Answer]]
"""`async (model, messages) -> text` or `-> (text, reasoning_trace)`; what it raises is its failure."""


class CallerVoice:
    """A voice that asks the user's own function."""

    def __init__(self, model: str, caller: Caller) -> None:
        self._model = model
        self._caller = caller

    async def speak(self, turn: Turn) -> Reply:
        """Hand the messages over and take what comes back."""
        sent = [{"role": message.role, "content": message.content} for message in turn.messages]
        answer = await self._caller(self._model, sent)
        if isinstance(answer, str):
            return Reply(answer)
        text, trace = answer
        return Reply(text, reasoning_trace=trace)
