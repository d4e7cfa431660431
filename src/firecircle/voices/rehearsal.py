"""What a voice would consume: estimates of a call, and stand-ins that answer without a request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from firecircle.circle.voice import Reply, Turn, Usage

if TYPE_CHECKING:
    from firecircle.voices.hosted.prices import Tariff


BYTES_A_TOKEN = 3
TOKENS_A_MESSAGE = 5
"""The role and the borders of a message."""


def estimated_usage(turn: Turn, tariff: Tariff | None) -> Usage:
    """The tokens of the question and of the longest answer, and their cost if the price is known."""
    size = sum(len(message.content.encode("utf-8", "replace")) for message in turn.messages)
    if turn.reply_schema is not None:
        size += len(json.dumps(turn.reply_schema, default=dict))
    tokens_in = -(-size // BYTES_A_TOKEN) + TOKENS_A_MESSAGE * len(turn.messages)
    cost = tariff.cost(tokens_in, 0, turn.max_tokens) if tariff else None
    return Usage(tokens_in, None, turn.max_tokens, cost)


REASONING = "The circle rehearses; a voice would give its reasons here. " * 12
"""As long as the part of a voice's reasoning that its peers see."""
NOTE = {
    "description": "A voice would say here what it sees and where. " * 3,
    "quote": "and quote the words of the prompt that show it",
}


class RehearsedVoice:
    """A stand-in for a voice, to learn what it would consume."""

    def __init__(self, estimate: Callable[[Turn], Usage], *, falsehood: float) -> None:
        self._estimate = estimate
        self._falsehood = falsehood

    async def speak(self, turn: Turn) -> Reply:
        """An invented answer, with the most a real one may consume."""
        answer: dict[str, object] = {
            "truth": 1 - self._falsehood,
            "indeterminacy": 0.1,
            "falsehood": self._falsehood,
        }
        notes = [NOTE, NOTE] if turn.round_number > 1 else []
        answer |= {"reasoning": REASONING, "patterns_observed": notes}
        fields = (turn.reply_schema or {}).get("properties", answer)
        if "falsehood" not in fields:  # not a judgement
            answer = {name: _fill(field) for name, field in fields.items()}
        return Reply(json.dumps(answer), usage=self._estimate(turn), attempts=0)


def _fill(field: Mapping[str, Any]) -> object:
    """The longest value of a field: text, or all choices."""
    return field["items"]["enum"] if field["type"] == "array" else REASONING
