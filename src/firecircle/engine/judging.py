"""`judge_many`: the way many prompts are judged: those of batches, runs of the lab, screenings of a corpus.

Arms whose voices cost nothing are processor time: their prompts go in pieces to workers. All others are
waited for, so prompts are begun here while there is room for calls and money. Each finished call is in the
journal before it is used, so that after a crash nothing is asked again; a provider that is out is waited
for; nothing is begun that the budget may not pay for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from firecircle.circle.result import CallRecord
from firecircle.circle.voice import Retry, Usage
from firecircle.engine.capacity import Admission, CallCapacity, Limits, Reservation, SharedBudget
from firecircle.engine.voices import JournaledVoices, Watch, judge_with_retries
from firecircle.engine.workers import ENOUGH, Workers
from firecircle.errors import BudgetError
from firecircle.names import is_embedded
from firecircle.settings import current_settings
from firecircle.voices.outages import Outages, Pause, StillOut

PIECE = 16
"""Judgements in one trip to a worker: enough that the trip does not matter, few enough to lose little."""


class Arm(Protocol):
    """One way of judging."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def models(self) -> tuple[str, ...]:
        """Everybody who may be asked."""
        ...

    async def judge(self, case: Any, voices: Any) -> Any:
        """What comes of one prompt; its voices are seated by `voices`."""
        ...

    async def rehearse(self, case: Any) -> tuple[CallRecord, ...]:
        """The calls that judging it may take; no voice is asked."""
        ...


class Task(Protocol):
    """A prompt with the arms that have not judged it yet."""

    @property
    def arms(self) -> tuple[str, ...]:
        """Their names, in the order in which they judge."""
        ...


Prompt = TypeVar("Prompt", bound=Task)


@dataclass(frozen=True, slots=True)
class Spending:
    """How much is spent and under way."""

    tokens: int
    usd: float
    calls_under_way: int = 0
    calls_allowed: int = 0


class Ledger(Generic[Prompt]):
    """What is to do, and what came of it. A caller's own ledger says where that is written down."""

    is_journaled = True
    """False where no voice costs anything and nothing need be found again."""
    spent: tuple[int, float] = (0, 0.0)
    """Tokens and money that earlier starts took."""
    piece = PIECE
    """Judgements that a worker gets at once."""

    def tasks(self, arms: Sequence[str]) -> Iterator[Prompt]:
        """What these arms have not judged yet."""
        raise NotImplementedError

    def case(self, task: Prompt) -> Any:
        """The prompt as an arm judges it."""
        raise NotImplementedError

    def voices(self, task: Prompt, arm: str, watch: Watch) -> Any:
        """Who seats the voices of this judgement; `JournaledVoices` or more."""
        raise NotImplementedError

    async def judge(self, arm: Arm, case: Any, voices: Any) -> Any:
        """What comes of one prompt under an arm."""
        return await arm.judge(case, voices)

    async def keep(self, task: Prompt, arm: str, made: Any) -> None:
        """Write down what an arm made of a prompt; back when it is on disk."""
        raise NotImplementedError

    async def keep_piece(self, done: Any) -> None:
        """Write down what a worker made of a piece."""
        raise NotImplementedError

    def counting(self, arm: str) -> AbstractContextManager[Callable[[Usage], None]]:
        """While an arm judges a prompt: counts what its calls take."""
        return nullcontext(lambda usage: None)

    def progressed(self, spending: Spending) -> None:
        """A call was made."""

    def paused(self, pause: Pause | None) -> None:
        """Everybody waits for a provider; None when that is over."""

    def retried(self, retry: Retry) -> None:
        """A call is tried again."""

    def lost_workers(self, count: int) -> None:
        """So many workers died so far."""


@dataclass(slots=True)
class Ending:
    """Why it ended before the last prompt; None where it did not."""

    stopped: str | None = None
    remedy: str | None = None
    """What the user can do about it."""


async def judge_many(
    arms: Sequence[Arm],
    ledger: Ledger[Prompt],
    limits: Limits,
    workers: Workers | None = None,
) -> Ending:
    """Have these arms judge everything that the ledger says is still to do.

    `workers` judge under arms that cost nothing; without them these are judged here as well.
    """
    many = _Many(ledger, limits, workers, Outages(current_settings().waiting, ledger.paused))
    free = tuple(arm for arm in arms if all(map(is_embedded, arm.models)))
    paid = tuple(arm for arm in arms if arm not in free)
    try:
        with many.outages.noticed():
            async with asyncio.TaskGroup() as tracks:
                if free:
                    tracks.create_task(many.in_workers(free) if workers else many.here(free))
                if paid:
                    tracks.create_task(many.here(paid))
    except BaseExceptionGroup as several:
        raise _foremost(several) from None
    return many.ending


def _foremost(several: BaseExceptionGroup) -> BaseException:
    """The one to tell: tracks that are called off because another one failed add nothing."""
    first = several.exceptions[0]
    return _foremost(first) if isinstance(first, BaseExceptionGroup) else first


class _Many(Generic[Prompt]):
    """What both tracks share."""

    def __init__(
        self, ledger: Ledger[Prompt], limits: Limits, workers: Workers | None, outages: Outages
    ) -> None:
        self.ledger, self.limits, self.workers, self.outages = ledger, limits, workers, outages
        self.ending = Ending()

    # -- processor time ------------------------------------------------------------------------------

    async def in_workers(self, arms: Sequence[Arm]) -> None:
        """Pieces to workers, a few at a time, so that memory does not grow with the data."""
        assert self.workers is not None
        room = asyncio.Semaphore(self.workers.count * ENOUGH)
        pieces = _in_pieces(
            self.ledger.tasks([arm.name for arm in arms]), max(1, self.ledger.piece // len(arms))
        )

        async def send(piece: list[Prompt]) -> None:
            assert self.workers is not None
            try:
                done = await self.workers.do(piece)
                self.ledger.lost_workers(self.workers.lost)
                await self.ledger.keep_piece(done)
            finally:
                room.release()

        async with asyncio.TaskGroup() as sent:
            for piece in pieces:
                await room.acquire()
                sent.create_task(send(piece))

    # -- calls ---------------------------------------------------------------------------------------

    async def here(self, arms: Sequence[Arm]) -> None:
        """Prompts begun while there is room for calls, each under one arm after another."""
        by_name = {arm.name: arm for arm in arms}
        is_free = all(is_embedded(model) for arm in arms for model in arm.models)
        capacity = CallCapacity(self.limits.calls, self.limits.at_once, is_free=is_free)
        budget = SharedBudget(self.limits, *self.ledger.spent)
        try:
            async with asyncio.TaskGroup() as begun:
                async for task, calls in self._affordable(by_name, budget):
                    await capacity.wait_for_room()
                    held = AsyncExitStack()
                    reserved = await held.enter_async_context(budget.reserve(calls))
                    expected = len(by_name[task.arms[0]].models)
                    admission = await held.enter_async_context(capacity.record(expected))
                    begun.create_task(self._judge(task, by_name, capacity, budget, reserved, admission, held))
        except* BudgetError as short:
            self.ending = Ending(
                f"the budget is spent: {_foremost(short)}", "raise the budget and give the same command"
            )
        except* StillOut as out:
            self.ending = Ending(str(_foremost(out)), "give the same command when it answers again")

    async def _affordable(
        self, arms: Mapping[str, Arm], budget: SharedBudget
    ) -> AsyncIterator[tuple[Prompt, tuple[CallRecord, ...]]]:
        """The tasks with what each may take, as far as there is a budget."""
        for task in self.ledger.tasks(tuple(arms)):
            calls: tuple[CallRecord, ...] = ()
            for name in task.arms if budget.is_limited else ():
                calls += await arms[name].rehearse(self.ledger.case(task))
            yield task, calls

    async def _judge(
        self,
        task: Prompt,
        arms: Mapping[str, Arm],
        capacity: CallCapacity,
        budget: SharedBudget,
        reserved: Reservation,
        admission: Admission,
        held: AsyncExitStack,
    ) -> None:
        def paid(count: Callable[[Usage], None], usage: Usage) -> None:
            count(usage)
            budget.spend(usage)
            self.ledger.progressed(Spending(budget.tokens, budget.usd, capacity.pending, capacity.allowed))

        async with held:
            for name in task.arms:
                with self.ledger.counting(name) as count:
                    watch = Watch(
                        capacity,
                        self.outages,
                        admission.has_asked,
                        partial(paid, count),
                        reserved.affords,
                        self.ledger.retried,
                    )
                    made = await self._made(arms[name], task, watch, reserved)
                await self.ledger.keep(task, name, made)

    async def _made(self, arm: Arm, task: Prompt, watch: Watch, reserved: Reservation) -> Any:
        judge = partial(self.ledger.judge, arm, self.ledger.case(task))
        if not self.ledger.is_journaled:
            return await judge(None)
        seat: Callable[[], JournaledVoices] = partial(self.ledger.voices, task, arm.name, watch)
        return await judge_with_retries(seat, judge, reserved.replace)


def _in_pieces(tasks: Iterator[Prompt], size: int) -> Iterator[list[Prompt]]:
    piece: list[Prompt] = []
    for task in tasks:
        piece.append(task)
        if len(piece) == size:
            yield piece
            piece = []
    if piece:
        yield piece
