"""One record under some of the arms, here or, for embedded arms, in worker processes that use every core.

The voices of a run are journaled, asked in batches where the plan wants it, or repeated from the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from firecircle.circle.events import Listener
from firecircle.circle.voice import Reply, Turn, Usage, Voice
from firecircle.convene import SeatedCircle, SeatedPanel
from firecircle.engine.journal import RecordRow
from firecircle.engine.voices import JournaledVoices
from firecircle.engine.workers import Workers
from firecircle.errors import ConfigError
from firecircle.lab.arms.arm import Arm, Case, CaseVoices, Unwatched
from firecircle.lab.records import Outcome, RunRecord, row_of
from firecircle.lab.runs.cases import ChosenRecord
from firecircle.names import is_embedded
from firecircle.voices.embedded import embedded_voice
from firecircle.voices.hosted.batches import BatchDesk, can_batch
from firecircle.voices.hosted.voice import HostedVoice

if TYPE_CHECKING:
    from firecircle.lab.runs.live import LiveCircles


@dataclass(frozen=True, slots=True)
class Task:
    """A record in one sitting, with the names of the arms that have yet to judge it."""

    chosen: ChosenRecord
    repeat: int
    plan_seed: int
    arms: tuple[str, ...]
    earlier: dict[str, Outcome]
    """What other arms made of it, for those that refer to them."""

    @property
    def case(self) -> Case:
        """As the arms see it."""
        return Case(self.chosen.record, self.chosen.dataset, self.repeat, self.plan_seed, dict(self.earlier))


async def judge_with(arm: Arm, case: Case, voices: CaseVoices) -> Outcome:
    """The outcome; a record that this arm cannot take, such as one without the layer in focus, has failed."""
    try:
        return await arm.judge(case, voices)
    except ConfigError as unsuitable:
        return Outcome(status="failed", error=str(unsuitable))


def as_record(run_id: str, task: Task, arm: str, kind: str, outcome: Outcome) -> RunRecord:
    """The outcome with whose it is."""
    record = task.chosen.record
    return RunRecord(
        run_id=run_id,
        arm=arm,
        kind=kind,
        repeat=task.repeat,
        seed=task.plan_seed,
        dataset=task.chosen.dataset,
        record_id=record.id,
        source=record.source,
        family=record.family,
        label=record.label,
        turn_count=record.prompt.turn_number,
        layers=tuple(layer.name for layer in record.prompt.layers),
        **dict(outcome),
    )


Clusters = Callable[[type, Sequence[Any]], AbstractAsyncContextManager[Workers]]
"""Opens workers on other machines, given the class of a worker and what it starts with."""
Thing = TypeVar("Thing")


def _seated_again(thing: Thing, voice: Callable[[str, Voice], Voice]) -> Thing:
    """An arm with these voices in its circles and panels, and without any key."""
    if isinstance(thing, SeatedCircle | SeatedPanel):
        changes: dict[str, Any] = {
            "config": thing.config.model_copy(update={"api_key": None}),
            "voices": {model: voice(model, known) for model, known in thing.voices.items()},
        }
        return cast(Thing, replace(thing, **changes))
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = {part.name: getattr(thing, part.name) for part in fields(thing) if part.init}
        return replace(thing, **{name: _seated_again(part, voice) for name, part in parts.items()})
    return thing


def as_sent(arms: Sequence[Arm]) -> list[Arm]:
    """The arms that cost nothing, as they travel to workers: readers are named, and loaded on arrival."""
    free = [arm for arm in arms if all(map(is_embedded, arm.models))]
    # A cheating member is no reader, and small.
    return [
        _seated_again(arm, lambda model, voice: _Named() if is_embedded(model) else voice) for arm in free
    ]


class _Named:
    """In the place of a reader while its arm travels."""

    async def speak(self, turn: Turn) -> Reply:
        """Nobody is here."""
        raise NotImplementedError


class RunWorker:
    """Judges under embedded arms in a process of its own, on this machine or another."""

    def __init__(self, run_id: str, sent: Sequence[Arm]) -> None:
        self._run_id = run_id
        self._arms = {arm.name: _seated_again(arm, _on_arrival) for arm in sent}
        self._loop = asyncio.new_event_loop()

    def do(self, piece: Sequence[Task]) -> list[RecordRow]:
        """Judge these; what comes back is packed for the journal."""
        return self._loop.run_until_complete(self._judge(piece))

    async def _judge(self, piece: Sequence[Task]) -> list[RecordRow]:
        return [row for task in piece for row in await judge_task(self._run_id, self._arms, task)]


def _on_arrival(model: str, voice: Voice) -> Voice:
    return embedded_voice(model) if is_embedded(model) else voice


async def judge_task(run_id: str, arms: Mapping[str, Arm], task: Task) -> list[RecordRow]:
    """One record under all its embedded arms, in the plan's order."""
    rows: list[RecordRow] = []
    for name in task.arms:
        outcome = task.earlier[name] = await judge_with(arms[name], task.case, Unwatched())
        rows.append(row_of(as_record(run_id, task, name, arms[name].kind, outcome), task.chosen.place))
    return rows


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
