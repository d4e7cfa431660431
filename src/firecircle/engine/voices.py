"""Voices whose words are journaled before they are used, and repeated from the journal after a restart."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from firecircle.circle.budget import estimate_of
from firecircle.circle.events import Listener
from firecircle.circle.voice import Reply, Retry, Turn, Usage, Voice, usage_of
from firecircle.engine.capacity import CallCapacity
from firecircle.engine.journal import CallPlace, FinishedCall, Journal, JudgementKey
from firecircle.errors import FailureKind, VoiceError
from firecircle.names import is_embedded
from firecircle.voices.outages import TRIES, Outages

PAST_DEADLINE = "no answer before the round's deadline"


@dataclass(frozen=True, slots=True)
class Watch:
    """What the calls of one judgement share with those of all others."""

    capacity: CallCapacity
    outages: Outages
    """Knows which providers are out."""
    asked: Callable[[], None]
    """Is told when the first call is about to be made."""
    paid: Callable[[Usage], None]
    """Is told what each new call took."""
    affords: Callable[[Usage], bool]
    """Whether the budget of all judgements has room for what this one was not expected to take."""
    retried: Callable[[Retry], None]


@dataclass(slots=True, kw_only=True)
class JournaledVoices:
    """Watches over the voices of one judgement."""

    journal: Journal
    key: JudgementKey
    watch: Watch
    set_aside: bool = False
    """Whether a voice was not asked because a host is out: the judgement does not count then."""
    withheld: list[tuple[bytes, CallPlace, FinishedCall]] = field(default_factory=list)
    """Calls that a passing trouble cost, not journaled until it is known whether they count."""
    _took: dict[tuple[int, str], float] = field(default_factory=dict)

    @property
    def hurt(self) -> bool:
        """Whether a voice was lost to a trouble that passes."""
        return self.set_aside or bool(self.withheld)

    async def write_withheld(self, *, as_part_of_the_record: bool) -> None:
        """Journal the calls that were lost: as what the record rests on, or only for what they took."""
        for number, (key, place, call) in enumerate(self.withheld):
            if as_part_of_the_record:
                await self.journal.write_call(key, place, call)
            else:
                own = hashlib.sha256(key + f"{time.time()}/{number}".encode()).digest()
                await self.journal.write_call(own, place, replace(call, may_pass=False))

    def seat(self, model: str, voice: Voice) -> Voice:
        """The voice, watched; embedded ones cost nothing and say the same again."""
        return voice if is_embedded(model) else JournaledVoice(model, voice, self)

    def seconds(self) -> float:
        """The longest of each round, one after another."""
        rounds: dict[int, float] = {}
        for (number, _), seconds in self._took.items():
            rounds[number] = max(rounds.get(number, 0.0), seconds)
        return sum(rounds.values())

    def was_asked(self, number: int, model: str) -> bool:
        """Whether a voice has been asked in a round before."""
        return (number, model) in self._took

    def took(self, number: int, model: str, seconds: float) -> None:
        """Note how long a call took when it was made."""
        self._took[number, model] = self._took.get((number, model), 0.0) + seconds


class JournaledVoice:
    """Says again what the journal holds; asks, and has it journaled, only what it does not."""

    def __init__(self, model: str, voice: Voice, voices: JournaledVoices) -> None:
        self._model = model
        self._voice = voice
        self._voices = voices

    def estimate(self, turn: Turn) -> Usage:
        """What the voice itself expects."""
        return estimate_of(self._voice, turn)

    async def speak(self, turn: Turn) -> Reply:
        """The journaled answer or failure of this very call, else a new one, journaled first."""
        voices = self._voices
        key = voices.key.call_key(self._model, turn)
        call = voices.journal.find_call(key)
        if call is None:
            if voices.journal.broken:
                raise voices.journal.broken
            is_further = voices.was_asked(turn.round_number, self._model)
            if is_further and not voices.watch.affords(self.estimate(turn)):
                raise VoiceError("the budget has no room for a further question", kind="over_budget")
            if voices.watch.outages.pause and voices.hurt:
                voices.set_aside = True
                raise VoiceError("not asked: another voice's provider is out", kind="connection")
            voices.watch.asked()
            try:
                async with voices.watch.capacity.answer():
                    async with voices.watch.capacity.call(self._model, self._voice):
                        call = await self._ask(turn, key)
                    if call.may_pass:
                        voices.withheld.append((key, self._place(turn), call))
                    else:
                        await self._journal(key, turn, call)
            except asyncio.CancelledError:
                voices.set_aside |= (
                    voices.watch.outages.pause is not None
                )  # there was no room while others waited
                raise
            voices.watch.paid(call.reply.usage if call.reply else call.usage)
        voices.took(turn.round_number, self._model, call.seconds)
        return call.replayed()

    async def _ask(self, turn: Turn, key: bytes) -> FinishedCall:
        loop = asyncio.get_running_loop()
        attempts = 1

        def retrying(retry: Retry) -> None:
            nonlocal attempts
            attempts = max(attempts, retry.attempt)
            self._voices.watch.retried(retry)
            turn.on_retry(retry)

        def lost(
            kind: FailureKind, message: str, tried: int, usage: Usage | None, *, may_pass: bool = False
        ) -> FinishedCall:
            seconds = loop.time() - started
            return FinishedCall(
                None, seconds, kind, message, max(attempts, tried), usage or Usage(), may_pass
            )

        def affords(more: Usage) -> bool:
            return turn.affords(more) and self._voices.watch.affords(more)

        started = loop.time()
        try:
            reply = await self._voice.speak(turn._replace(on_retry=retrying, affords=affords))
        except VoiceError as error:
            return lost(error.kind, str(error), error.attempts, error.usage, may_pass=error.may_pass)
        except asyncio.CancelledError as cancelled:
            # The round's end is this call's failure; anything else that cancels is the run's.
            if turn.deadline is None or loop.time() < turn.deadline:
                raise
            # Whoever was being tried again was lost to what made that necessary, not to being slow.
            may_pass = self._voices.watch.outages.has_lost(self._model)
            timeout = lost("timeout", PAST_DEADLINE, 1, usage_of(cancelled), may_pass=may_pass)
            if may_pass:
                self._voices.withheld.append((key, self._place(turn), timeout))
            else:
                await self._journal(key, turn, timeout)
            self._voices.watch.paid(timeout.usage)
            raise
        return FinishedCall(reply, loop.time() - started)

    def _place(self, turn: Turn) -> CallPlace:
        return CallPlace(self._voices.key, self._model, turn.round_number)

    async def _journal(self, key: bytes, turn: Turn, call: FinishedCall) -> None:
        # Once paid, an answer is written down even if the round has run out of time meanwhile.
        await asyncio.shield(self._voices.journal.write_call(key, self._place(turn), call))


Seated = TypeVar("Seated", bound=JournaledVoices)
Judgement = TypeVar("Judgement")


async def judge_with_retries(
    seat: Callable[[], Seated],
    judge: Callable[[Seated], Awaitable[Judgement]],
    lost: Callable[[Sequence[Usage]], Awaitable[None]],
) -> Judgement:
    """The judgement. While a provider is out it is waited for, and voices that answered are not asked again;
    a voice that is lost although its provider answers is tried a few times.

    `lost` hears what calls took before they are made again.
    """
    tries = 0
    while True:
        voices = seat()
        async with voices.watch.outages.passage():
            judgement = await judge(voices)
        if voices.journal.broken:
            raise voices.journal.broken
        is_out = voices.set_aside or voices.watch.outages.pause is not None
        tries += not is_out  # an outage uses up no try, however long it lasts
        counts = not voices.hurt or (not is_out and tries >= TRIES)
        await voices.write_withheld(as_part_of_the_record=counts)
        if counts:
            return judgement
        await lost([call.usage for _, _, call in voices.withheld])


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
