"""Holding a run's circles again: embedded voices say the same, others from the journal. Nobody is asked."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.circle.events import Listener
from firecircle.circle.voice import Reply, Turn, Voice
from firecircle.errors import VoiceError
from firecircle.lab.arms.arm import Case
from firecircle.lab.runs.journal import Journal
from firecircle.lab.runs.watch import call_key
from firecircle.names import is_embedded


@dataclass(frozen=True, slots=True)
class FromTheJournal:
    """Seats voices that repeat what they said to this arm about this case."""

    journal: Journal
    arm: str
    case: Case

    def seat(self, model: str, voice: Voice) -> Voice:
        """The embedded voice itself, or one that repeats."""
        return voice if is_embedded(model) else _Repeating(self, model)

    def listener(self, circle: str, models: tuple[str, ...]) -> Listener | None:
        """Nobody: what was said is told already."""
        return None

    def seconds(self) -> float:
        """No time passes."""
        return 0.0


@dataclass(frozen=True, slots=True)
class _Repeating:
    source: FromTheJournal
    model: str

    async def speak(self, turn: Turn) -> Reply:
        kept = self.source.journal.find_call(call_key(self.source.arm, self.source.case, self.model, turn))
        if kept is None:
            raise VoiceError("this call is not in the journal", kind="connection", model=self.model)
        return kept.again()
