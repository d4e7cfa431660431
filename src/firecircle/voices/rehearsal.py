"""Voices for a rehearsal: they say something of typical length, and tell what the real answer may consume.

With them a circle can be held for its cost alone. They never agree, so that every possible round is held.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from firecircle.circle.voice import Reply, Turn, Usage

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
        """An answer that nobody gave, with what the real one may consume."""
        answer = {"truth": 1 - self._falsehood, "indeterminacy": 0.1, "falsehood": self._falsehood}
        notes = [NOTE, NOTE] if turn.round_number > 1 else []
        said = {**answer, "reasoning": REASONING, "patterns_observed": notes}
        return Reply(json.dumps(said), usage=self._estimate(turn), attempts=0)
