"""What a call may consume, said before it is made, and voices that rehearse a circle with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from firecircle.circle.voice import Reply, Turn, Usage

if TYPE_CHECKING:
    from firecircle.voices.hosted.prices import Tariff


BYTES_A_TOKEN = 3
TOKENS_A_MESSAGE = 5
"""What wraps a message: its role and its borders."""


def estimated_usage(turn: Turn, tariff: Tariff | None) -> Usage:
    """The tokens of the question, an answer as long as it may be, and their cost if the price is known."""
    size = sum(len(message.content.encode("utf-8", "replace")) for message in turn.messages)
    if turn.reply_schema is not None:
        size += len(json.dumps(turn.reply_schema, default=dict))
    tokens_in = -(-size // BYTES_A_TOKEN) + TOKENS_A_MESSAGE * len(turn.messages)
    cost = tariff.cost(tokens_in, 0, turn.max_tokens) if tariff else None
    return Usage(tokens_in, None, turn.max_tokens, cost)


REASONING = "The circle rehearses; a voice would give its reasons here. " * 12
"""As much of a voice's reasoning as its peers are shown."""
NOTE = {
    "description": "A voice would say here what it sees and where. " * 3,
    "quote": "and quote the words of the prompt that show it",
}


class RehearsedVoice:
    """Stands in for a voice whose consumption is of interest."""

    def __init__(self, estimate: Callable[[Turn], Usage], *, falsehood: float) -> None:
        self._estimate = estimate
        self._falsehood = falsehood

    async def speak(self, turn: Turn) -> Reply:
        """An invented answer, with what a real one may consume."""
        answer: dict[str, object] = {
            "truth": 1 - self._falsehood,
            "indeterminacy": 0.1,
            "falsehood": self._falsehood,
        }
        notes = [NOTE, NOTE] if turn.round_number > 1 else []
        answer |= {"reasoning": REASONING, "patterns_observed": notes}
        fields = (turn.reply_schema or {}).get("properties", answer)
        if "falsehood" not in fields:  # no judgement is asked for
            answer = {name: _filled(field) for name, field in fields.items()}
        return Reply(json.dumps(answer), usage=self._estimate(turn), attempts=0)


def _filled(field: Mapping[str, Any]) -> object:
    """As much as a voice may put into a field: words, or everything there is to choose from."""
    return field["items"]["enum"] if field["type"] == "array" else REASONING
