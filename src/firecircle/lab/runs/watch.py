"""Voices that are watched over: what they say is in the journal before anybody uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from firecircle.circle.budget import estimate_of
from firecircle.circle.events import Listener
from firecircle.circle.voice import Reply, Retry, Turn, Usage, Voice
from firecircle.errors import FailureKind, VoiceError
from firecircle.lab.arms.arm import Case
from firecircle.lab.runs.capacity import Gate
from firecircle.lab.runs.journal import Journal
from firecircle.lab.runs.live import LiveCircles
from firecircle.lab.runs.rows import KeptCall, Placed
from firecircle.names import is_embedded

PAST_DEADLINE = "no answer before the round's deadline"


@dataclass(slots=True)
class Watch:
    """Watches over the voices of one arm on one case."""

    journal: Journal
    gate: Gate
    arm: str
    case: Case
    asked: Callable[[], None]
    """Told when the first call is about to be made."""
    paid: Callable[[Usage], None]
    """Told what each new call took."""
    retried: Callable[[Retry], None]
    live: LiveCircles
    """Writes its circles down while they sit."""
    _took: dict[tuple[int, str], float] = field(default_factory=dict)

    def seat(self, model: str, voice: Voice) -> Voice:
        """The voice, watched; embedded ones cost nothing and say the same again."""
        return voice if is_embedded(model) else WatchedVoice(model, voice, self)

    def listener(self, circle: str, models: tuple[str, ...]) -> Listener | None:
        """Whoever writes circles down; one of embedded voices is over before anybody could look."""
        return None if all(map(is_embedded, models)) else self.live.listener(circle, self.case)

    def seconds(self) -> float:
        """The longest of each round, one after another."""
        rounds: dict[int, float] = {}
        for (number, _), seconds in self._took.items():
            rounds[number] = max(rounds.get(number, 0.0), seconds)
        return sum(rounds.values())

    def took(self, number: int, model: str, seconds: float) -> None:
        """Note how long a call took when it was made."""
        self._took[number, model] = self._took.get((number, model), 0.0) + seconds


class WatchedVoice:
    """Says again what the journal holds; asks, and has it journaled, only what it does not."""

    def __init__(self, model: str, voice: Voice, watch: Watch) -> None:
        self._model = model
        self._voice = voice
        self._watch = watch

    def estimate(self, turn: Turn) -> Usage:
        """What the voice itself expects."""
        return estimate_of(self._voice, turn)

    async def speak(self, turn: Turn) -> Reply:
        """The journaled answer or failure of this very call, else a new one, journaled first."""
        watch = self._watch
        key = call_key(watch.arm, watch.case, self._model, turn)
        kept = watch.journal.find_call(key)
        if kept is None:
            if watch.journal.broken:
                raise watch.journal.broken
            watch.asked()
            async with watch.gate.answer():
                async with watch.gate.call(self._model, self._voice):
                    kept = await self._ask(turn, key)
                await self._keep(key, turn, kept)
            watch.paid(kept.reply.usage if kept.reply else Usage())
        watch.took(turn.round_number, self._model, kept.seconds)
        return kept.again()

    async def _ask(self, turn: Turn, key: bytes) -> KeptCall:
        loop = asyncio.get_running_loop()
        attempts = 1

        def retrying(retry: Retry) -> None:
            nonlocal attempts
            attempts = max(attempts, retry.attempt)
            self._watch.retried(retry)
            turn.on_retry(retry)

        def lost(kind: FailureKind, message: str, tried: int) -> KeptCall:
            return KeptCall(None, loop.time() - started, kind, message, max(attempts, tried))

        started = loop.time()
        try:
            reply = await self._voice.speak(turn._replace(on_retry=retrying))
        except VoiceError as error:
            return lost(error.kind, str(error), error.attempts)
        except asyncio.CancelledError:
            # The round's end is this call's failure; anything else that cancels is the run's.
            if turn.deadline is None or loop.time() < turn.deadline:
                raise
            await self._keep(key, turn, lost("timeout", PAST_DEADLINE, 1))
            raise
        return KeptCall(reply, loop.time() - started)

    async def _keep(self, key: bytes, turn: Turn, call: KeptCall) -> None:
        case = self._watch.case
        place = Placed(
            self._watch.arm, case.repeat, case.dataset, case.record.id, self._model, turn.round_number
        )
        # Once paid, an answer is written down even if the round has run out of time meanwhile.
        await asyncio.shield(self._watch.journal.keep_call(key, place, call))


def call_key(arm: str, case: Case, model: str, turn: Turn) -> bytes:
    """Whose call it is, and everything that shapes the answer."""
    return turn.digest(arm, case.repeat, case.dataset, case.record.id, model, turn.round_number)
