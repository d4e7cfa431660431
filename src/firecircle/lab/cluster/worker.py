"""A worker of a cluster: it holds circles, and asks the driver whatever is not embedded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from firecircle.circle.events import Event, Listener
from firecircle.circle.voice import Reply, Retry, Turn, Usage, Voice
from firecircle.convene import SeatedCircle, SeatedPanel
from firecircle.engine.journal import RecordRow
from firecircle.errors import FailureKind, VoiceError
from firecircle.lab.arms.arm import Arm, Case
from firecircle.lab.records import Outcome
from firecircle.lab.runs.judging import Task, judge_task, judge_with
from firecircle.names import is_embedded
from firecircle.voices.embedded import embedded_voice

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Stands for a voice that another process asks."""

    model: str

    async def speak(self, turn: Turn) -> Reply:
        """Nobody is here."""
        raise VoiceError(f"{self.model} is not asked by this process", kind="raised", model=self.model)


def without_voices(thing: Thing) -> Thing:
    """An arm as it travels: who sits is told by name alone, and no key goes with it."""
    return cast(Thing, _seated_again(thing, Elsewhere))


def with_embedded_voices(thing: Thing) -> Thing:
    """An arm that has arrived: its embedded voices are made here, the others are elsewhere."""
    return cast(
        Thing,
        _seated_again(thing, lambda model: embedded_voice(model) if is_embedded(model) else Elsewhere(model)),
    )


def seated_in(thing: Any) -> Iterator[SeatedCircle | SeatedPanel]:
    """Every circle and panel of an arm."""
    if isinstance(thing, SeatedCircle | SeatedPanel):
        yield thing
    elif is_dataclass(thing) and not isinstance(thing, type):
        for part in fields(thing):
            yield from seated_in(getattr(thing, part.name))


def _seated_again(thing: Any, voice: Callable[[str], Voice]) -> Any:
    if isinstance(thing, SeatedCircle | SeatedPanel):
        changes: dict[str, Any] = {
            "config": thing.config.model_copy(update={"api_key": None}),
            "voices": {model: voice(model) for model in thing.voices},
        }
        return replace(thing, **changes)
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = {part.name: getattr(thing, part.name) for part in fields(thing) if part.init}
        return replace(thing, **{name: _seated_again(part, voice) for name, part in parts.items()})
    return thing


# -- what the two tell each other --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """The worker wants this question asked."""

    job: int
    call: int
    model: str
    turn: Turn
    """Its deadline is in seconds from now."""


@dataclass(frozen=True, slots=True)
class CallOff:
    """Nobody waits for this answer any more."""

    job: int
    call: int


@dataclass(frozen=True, slots=True)
class Told:
    """What happened in a circle of the job."""

    job: int
    circle: str
    models: tuple[str, ...]
    event: Event


@dataclass(frozen=True, slots=True)
class Done:
    """What came of the job."""

    job: int
    outcome: Outcome | Exception


FromWorker = Ask | CallOff | Told | Done


@dataclass(frozen=True, slots=True)
class Answer:
    """The driver's answer: a reply, or how the voice was lost."""

    job: int
    call: int
    reply: Reply | None
    seconds: float
    """How long the calls of the job have taken so far, one round after another."""
    lost: FailureKind | None = None
    message: str = ""
    attempts: int = 1
    usage: Usage | None = None
    may_pass: bool = False

    def spoken(self) -> Reply:
        """The reply, or the failure."""
        if self.reply is None:
            raise VoiceError(
                self.message,
                kind=self.lost or "raised",
                attempts=self.attempts,
                usage=self.usage,
                may_pass=self.may_pass,
            )
        return self.reply


@dataclass(frozen=True, slots=True)
class Retrying:
    """A call of the job is tried again."""

    job: int
    call: int
    retry: Retry


ToWorker = Answer | Retrying


# -- the worker --------------------------------------------------------------------------------------------


class CircleWorker:
    """Judges in a process of its own. Ray makes an actor of it; its methods run in one event loop."""

    def __init__(self, run_id: str, arms: Sequence[Arm]) -> None:
        self._run_id = run_id
        self._arms: Mapping[str, Arm] = {arm.name: with_embedded_voices(arm) for arm in arms}
        self._jobs: dict[int, asyncio.Task[None]] = {}
        self._voices: dict[int, _DriversVoices] = {}
        self._outbox: list[FromWorker] = []
        self._news = asyncio.Event()

    async def pid(self) -> int:
        """The process."""
        return os.getpid()

    async def do(self, piece: Sequence[Task]) -> list[RecordRow]:
        """Judge records under embedded arms; what comes back is packed for the journal."""
        rows: list[RecordRow] = []
        for task in piece:
            rows += await judge_task(self._run_id, self._arms, task)
            await asyncio.sleep(0)
        return rows

    async def begin(self, job: int, arm: str, case: Case) -> None:
        """Begin to judge a case under an arm."""
        voices = self._voices[job] = _DriversVoices(job, self)
        self._jobs[job] = asyncio.create_task(self._judge(job, self._arms[arm], case, voices))

    async def _judge(self, job: int, arm: Arm, case: Case, voices: _DriversVoices) -> None:
        try:
            outcome: Outcome | Exception = await judge_with(arm, case, voices)
        except Exception as error:  # noqa: BLE001 - the driver is to know, whatever it is
            outcome = error
        finally:
            self._jobs.pop(job, None)
            self._voices.pop(job, None)
        self.say(Done(job, outcome))

    async def call_off(self, job: int) -> None:
        """Stop judging."""
        if task := self._jobs.get(job):
            task.cancel()

    async def tell(self, messages: Sequence[ToWorker]) -> None:
        """What the driver has to say."""
        for message in messages:
            if voices := self._voices.get(message.job):
                voices.take(message)

    def say(self, message: FromWorker) -> None:
        """Leave a message for the driver."""
        self._outbox.append(message)
        self._news.set()

    async def hear(self) -> list[FromWorker]:
        """All messages, in their order; waits for one."""
        await self._news.wait()
        self._news.clear()
        said, self._outbox = self._outbox, []
        return said


class _DriversVoices:
    """The voices of one job: embedded ones as they are, others through the driver."""

    def __init__(self, job: int, worker: CircleWorker) -> None:
        self.job = job
        self.worker = worker
        self._waiting: dict[int, tuple[asyncio.Future[Answer], Turn]] = {}
        self._calls = 0
        self._seconds = 0.0

    def seat(self, model: str, voice: Voice) -> Voice:
        """The embedded voice itself, or one that asks the driver."""
        return voice if is_embedded(model) else _DriversVoice(model, self)

    def listener(self, circle: str, models: tuple[str, ...]) -> Listener | None:
        """Tells the driver, who writes circles to the store."""
        if all(map(is_embedded, models)):
            return None
        return lambda event: self.worker.say(Told(self.job, circle, models, event))

    def seconds(self) -> float:
        """As the driver's journal counts them."""
        return self._seconds

    def take(self, message: ToWorker) -> None:
        """An answer, or that one is still tried for."""
        waiting = self._waiting.get(message.call)
        if waiting is None:
            return
        answered, turn = waiting
        if isinstance(message, Retrying):
            turn.on_retry(message.retry)
        elif not answered.done():
            self._seconds = message.seconds
            answered.set_result(message)

    async def ask(self, model: str, turn: Turn) -> Reply:
        """Have the driver ask, and wait."""
        loop = asyncio.get_running_loop()
        self._calls += 1
        call = self._calls
        self._waiting[call] = (loop.create_future(), turn)
        left = None if turn.deadline is None else turn.deadline - loop.time()
        plain = turn._replace(
            deadline=left,
            on_retry=Turn._field_defaults["on_retry"],
            affords=Turn._field_defaults["affords"],
        )
        self.worker.say(Ask(self.job, call, model, plain))
        try:
            return (await self._waiting[call][0]).spoken()
        except asyncio.CancelledError:
            self.worker.say(CallOff(self.job, call))
            raise
        finally:
            del self._waiting[call]


@dataclass(frozen=True, slots=True)
class _DriversVoice:
    model: str
    voices: _DriversVoices

    async def speak(self, turn: Turn) -> Reply:
        return await self.voices.ask(self.model, turn)
