"""Voices of a run: journaled, asked in batches where the plan wants it, or repeated from the journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from firecircle.circle.events import Listener
from firecircle.circle.voice import Reply, Turn, Usage, Voice
from firecircle.engine.journal import Journal, JudgementKey
from firecircle.engine.voices import JournaledVoices
from firecircle.errors import VoiceError
from firecircle.lab.arms.arm import Case
from firecircle.lab.runs.live import LiveCircles
from firecircle.names import is_embedded
from firecircle.voices.hosted.batches import BatchDesk, can_batch
from firecircle.voices.hosted.voice import HostedVoice


@dataclass(slots=True, kw_only=True)
class RunVoices(JournaledVoices):
    """Watches over the voices of one arm on one case."""

    case: Case
    live: LiveCircles
    """Writes its circles to the store while they are held."""
    desk: BatchDesk | None = None
    """Sends questions together, if the plan wants batches."""

    def seat(self, model: str, voice: Voice) -> Voice:
        """The voice, watched; embedded ones cost nothing and say the same again."""
        if self.desk is not None and isinstance(voice, HostedVoice) and can_batch(voice):
            voice = BatchedVoice(voice, self.desk, partial(self.key.call_key, model))
        return JournaledVoices.seat(self, model, voice)

    def listener(self, circle: str, models: tuple[str, ...]) -> Listener | None:
        """Writes circles to the store; one of embedded voices is over before anybody could look."""
        return None if all(map(is_embedded, models)) else self.live.listener(circle, self.case)


@dataclass(frozen=True, slots=True)
class BatchedVoice:
    """A hosted voice whose questions are handed in with those of other records."""

    voice: HostedVoice
    desk: BatchDesk
    name_of: Callable[[Turn], bytes]

    def estimate(self, turn: Turn) -> Usage:
        """What the voice itself expects, at the full price."""
        return self.voice.estimate(turn)

    async def speak(self, turn: Turn) -> Reply:
        """The answer, whenever the batch has it."""
        return await self.desk.ask(self.name_of(turn).hex(), self.voice, turn)


@dataclass(frozen=True, slots=True)
class ReplayedVoices:
    """Seats voices that repeat what they said for this judgement."""

    journal: Journal
    key: JudgementKey
    seconds_then: dict[tuple[int, str], list[float]] = field(default_factory=dict)
    """How long the calls took when they were made, by round and voice."""

    def seat(self, model: str, voice: Voice) -> Voice:
        """The embedded voice itself, or one that repeats."""
        return voice if is_embedded(model) else _ReplayedVoice(self, model)

    def listener(self, circle: str, models: tuple[str, ...]) -> Listener | None:
        """None: these circles were written when they were first held."""
        return None

    def seconds(self) -> float:
        """No time passes."""
        return 0.0


@dataclass(frozen=True, slots=True)
class _ReplayedVoice:
    source: ReplayedVoices
    model: str

    async def speak(self, turn: Turn) -> Reply:
        call = self.source.journal.find_call(self.source.key.call_key(self.model, turn))
        if call is None:
            raise VoiceError("this call is not in the journal", kind="connection", model=self.model)
        self.source.seconds_then.setdefault((turn.round_number, self.model), []).append(call.seconds)
        return call.replayed()
