"""Carrying out a run: two tracks over the same records, one for embedded arms and one for all others.

Embedded arms are CPU, so their records go in batches to worker processes, and each is journaled when it is
finished. Hosted and local voices are waited for, so their records are begun while there is room for calls;
there each finished call is journaled before it is used. A run that is resumed finds both in the journal, and
goes on with what is missing.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from firecircle.circle.panel import Guide
from firecircle.circle.result import CallRecord
from firecircle.circle.voice import Retry, Usage
from firecircle.engine.capacity import Admission, CallCapacity
from firecircle.engine.journal import Journal, RecordRow
from firecircle.engine.voices import judge_unhurt
from firecircle.errors import BudgetError, StoreError
from firecircle.lab.arms.arm import Arm, Case
from firecircle.lab.arms.panel import GuidedArm
from firecircle.lab.plan import Plan
from firecircle.lab.records import Outcome
from firecircle.lab.runs.cases import chosen_records
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.runs.journal import RunJournal, row_of, unpack_record
from firecircle.lab.runs.judging import (
    Cluster,
    Task,
    as_record,
    judge_tasks,
    judge_with,
    open_pool,
    with_earlier,
)
from firecircle.lab.runs.limits import RunBudget
from firecircle.lab.runs.live import LiveCircles
from firecircle.lab.runs.run_voices import ReplayedVoices, RunVoices
from firecircle.lab.runs.store_sync import sync_store
from firecircle.lab.runs.tally import Tally
from firecircle.names import is_embedded
from firecircle.settings import current_settings
from firecircle.store.bank.entries import store_fire_circle_patterns
from firecircle.store.opening import Store, open_store
from firecircle.voices.hosted.batches import BatchDesk
from firecircle.voices.outages import Outages, Pause, StillOut

BATCH = 16
"""Judgements in one trip to a worker: enough that the trip does not matter, few enough to lose little."""
BATCHES_PER_WORKER = 2
NOTES_KEPT = 3

Follower = Callable[[Tally], None]
"""Told how far the run is, whenever something was finished."""


QUESTIONS_IN_BATCHES = 10_000
"""Calls under way where answers come in batches: all that one takes."""


@dataclass(slots=True)
class RunState:
    """How a run was left."""

    tally: Tally
    stopped: str | None = None
    """Why it stopped before everything was done; None when everything is."""
    not_stored: str | None = None
    """Which of its circles are not in the store, and why; None when all are that should be."""
    remedy: str | None = None
    """What the user can do where it stopped."""
    failed_in_passing: int = 0
    """Judgements that failed because of network, limit or server: the same command makes them anew."""
    hurt_in_passing: int = 0
    """Judgements that lost a voice for such a reason; likewise."""
    table_rewritten: bool = False
    """Whether the table of a finished run was damaged, and was written anew from the journal."""


async def carry_out(
    folder: RunFolder,
    arms: Sequence[Arm],
    follow: Follower,
    store: Store | None = None,
    *,
    embedded_too: bool = False,
    cluster: Cluster | None = None,
) -> RunState:
    """Have the arms of the run's plan do everything that is not done yet. Call with the folder held.

    Circles are held by the workers of the cluster, if there is one; calls are made, and journaled, here.

    Hosted and local circles are written into the store, if there is one, while they sit; embedded ones, where
    that is asked for, at the end.
    """
    with RunJournal(folder.journal) as journal:
        tally = Tally.of(journal, (arm.name for arm in arms), folder.total)

        def paused(pause: Pause | None) -> None:
            tally.pause = pause
            folder.note_pause(pause)
            follow(tally)

        outages = Outages(current_settings().waiting, paused)
        live = LiveCircles(store, folder.about, embedded_too=embedded_too)
        run = _Run(folder, folder.plan, journal, tally, follow, live, outages, cluster)
        follow(tally)
        taught = tuple(arm for arm in arms if isinstance(arm, GuidedArm))
        free = tuple(arm for arm in arms if all(map(is_embedded, arm.models)) and arm not in taught)
        paid = tuple(arm for arm in arms if not all(map(is_embedded, arm.models)) and arm not in taught)
        try:
            with outages.noticed():
                async with asyncio.TaskGroup() as tracks:
                    if free:
                        tracks.create_task(run.embedded(free))
                    if paid:
                        tracks.create_task(run.hosted(paid))
                if taught and not run.stopped:
                    await run.guided(taught)
        except BaseExceptionGroup as several:
            raise _foremost(several) from None
        finally:
            folder.note_pause(None)
            await run.live.written()
        not_stored = await sync_store(folder, journal, arms, run.live)
        return RunState(tally, run.stopped, not_stored, run.remedy, *journal.mendable())


def _foremost(several: BaseExceptionGroup) -> BaseException:
    """The one to tell: tracks that are called off because another one failed add nothing."""
    first = several.exceptions[0]
    if isinstance(first, BaseExceptionGroup):
        return _foremost(first)
    if isinstance(first, BrokenProcessPool):
        return StoreError("a worker process was killed (out of memory?); run the same command again to go on")
    return first


@dataclass(slots=True)
class _Run:
    """What both tracks share."""

    folder: RunFolder
    plan: Plan
    journal: Journal
    tally: Tally
    follow: Follower
    live: LiveCircles
    outages: Outages
    cluster: Cluster | None = None
    stopped: str | None = None
    remedy: str | None = None

    # -- what is to do -------------------------------------------------------------------------------

    def tasks(self, arms: Sequence[Arm]) -> Iterator[Task]:
        """What these arms have not judged yet."""
        names = tuple(arm.name for arm in arms)
        if all(self.tally.arms[name].records >= self.tally.total for name in names):
            return
        for repeat, seed in self.plan.sittings:
            for chosen in chosen_records(self.plan, self.folder.base):
                done = self.journal.judged_by(repeat, chosen.place)
                missing = tuple(name for name in names if name not in done)
                if missing:
                    earlier = {name: unpack_record(done[name]) for name in names if name in done}
                    yield Task(chosen, repeat, seed, missing, earlier)

    async def keep(self, rows: Sequence[RecordRow]) -> None:
        """Journal judged records and count them."""
        await self.journal.write_records(rows)
        self.tally.add(rows)
        self.follow(self.tally)

    # -- embedded arms -------------------------------------------------------------------------------

    async def embedded(self, arms: Sequence[Arm]) -> None:
        """Batches to worker processes, a few at a time, so that memory does not grow with the data."""
        batches = _batched(self.tasks(arms), max(1, BATCH // len(arms)))
        first = next(batches, None)
        if first is None:
            return
        room = asyncio.Semaphore(self.plan.workers * BATCHES_PER_WORKER)
        with self._embedded_judges() as judge:

            async def send(batch: list[Task]) -> None:
                try:
                    await self.keep(await judge(batch))
                finally:
                    room.release()

            async with asyncio.TaskGroup() as sent:
                for batch in _chained(first, batches):
                    await room.acquire()
                    sent.create_task(send(batch))

    @contextmanager
    def _embedded_judges(self) -> Iterator[Callable[[list[Task]], Awaitable[list[RecordRow]]]]:
        """Who judges batches: the workers of the cluster, or processes on this machine."""
        if self.cluster is not None:
            yield self.cluster.judge_tasks
            return
        about = self.folder.about
        loop = asyncio.get_running_loop()
        with open_pool(self.plan, about.run_id, about.default_models, self.plan.workers) as pool:
            try:
                yield lambda batch: loop.run_in_executor(pool, judge_tasks, batch)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    # -- guided arms -----------------------------------------------------------------------------------

    async def guided(self, arms: Sequence[GuidedArm]) -> None:
        """After the circles they learn from. What these said is in the journal, so nobody is asked again."""
        if not any(True for _ in self.tasks(arms)):
            return
        with (
            tempfile.TemporaryDirectory(dir=self.folder.path, prefix=".banks-") as place,
            ExitStack() as open_banks,
        ):
            taught = [
                arm.guided_by(
                    await taught_banks(self.folder, self.journal, arm, f"{place}/{number}", open_banks)
                )
                for number, arm in enumerate(arms)
            ]
            await self.hosted(taught)

    # -- hosted and local arms -----------------------------------------------------------------------

    async def hosted(self, arms: Sequence[Arm]) -> None:
        """Records begun while there is room for calls, each under one arm after another."""
        capacity = CallCapacity(
            QUESTIONS_IN_BATCHES if self.plan.concurrency.batch else self.plan.concurrency.calls
        )
        desk = BatchDesk(self.folder.path / "batches.jsonl") if self.plan.concurrency.batch else None
        budget = RunBudget(self.plan.budget, self.tally.spent_tokens, self.tally.spent_usd)
        by_name = {arm.name: arm for arm in arms}
        try:
            async with asyncio.TaskGroup() as begun:
                async for task, calls in self._affordable(by_name, budget):
                    await capacity.wait_for_room()
                    held = AsyncExitStack()
                    affords = await held.enter_async_context(budget.reserve(calls))
                    expected = len(by_name[task.arms[0]].models)
                    admission = await held.enter_async_context(capacity.record(expected))
                    judging = self._judge(task, by_name, capacity, budget, affords, admission, held, desk)
                    begun.create_task(judging)
        except* BudgetError as short:
            self.stopped = f"the budget is spent: {short.exceptions[0]}"
            self.remedy = "raise [budget] in the plan and give the same command: the run goes on"
        except* StillOut as out:
            self.stopped = str(out.exceptions[0])
            self.remedy = "give the same command when it answers again: the run goes on"

    async def _affordable(
        self, arms: dict[str, Arm], budget: RunBudget
    ) -> AsyncIterator[tuple[Task, tuple[CallRecord, ...]]]:
        """The tasks with what each may take, as far as anybody asks."""
        first = True
        for task in self.tasks(tuple(arms.values())):
            calls: tuple[CallRecord, ...] = ()
            if budget.limited:
                for name in task.arms:
                    calls += await arms[name].rehearse(task.case)
                if first:
                    budget.require_enough_for(calls)
            first = False
            yield task, calls

    async def _judge(
        self,
        task: Task,
        arms: dict[str, Arm],
        capacity: CallCapacity,
        budget: RunBudget,
        affords: Callable[[Usage], bool],
        admission: Admission,
        held: AsyncExitStack,
        desk: BatchDesk | None,
    ) -> None:
        def paid(count: Callable[[Usage], None], usage: Usage) -> None:
            count(usage)
            budget.spend(usage)
            self.tally.spent_tokens, self.tally.spent_usd = budget.tokens, budget.usd
            self.tally.calls_under_way, self.tally.calls_allowed = capacity.pending, capacity.allowed
            self.follow(self.tally)

        def retried(retry: Retry) -> None:
            self.tally.retries += 1
            self.tally.notes = [*self.tally.notes, retry.reason][-NOTES_KEPT:]
            self.follow(self.tally)

        async with held:
            case = task.case
            for name in task.arms:
                with self.tally.arms[name].counting() as count:
                    seat = partial(
                        RunVoices,
                        journal=self.journal,
                        key=case.key(name),
                        capacity=capacity,
                        outages=self.outages,
                        asked=admission.has_asked,
                        paid=partial(paid, count),
                        affords=affords,
                        retried=retried,
                        case=case,
                        live=self.live,
                        desk=desk,
                    )
                    outcome = await judge_unhurt(seat, partial(self._judged, arms[name], case))
                case = with_earlier(case, name, outcome)
                record = as_record(self.folder.about.run_id, task, arms[name], outcome)
                await self.keep([row_of(record, task.chosen.place)])

    async def _judged(self, arm: Arm, case: Case, voices: RunVoices) -> Outcome:
        # A guided arm reads banks that are open here.
        if self.cluster is None or isinstance(arm, GuidedArm) or not self.cluster.takes(arm):
            return await judge_with(arm, case, voices)
        try:
            return await self.cluster.judge(arm, case, voices)
        finally:
            self.tally.workers_lost = self.cluster.workers_lost


def _batched(tasks: Iterator[Task], size: int) -> Iterator[list[Task]]:
    batch: list[Task] = []
    for task in tasks:
        batch.append(task)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _chained(first: list[Task], rest: Iterator[list[Task]]) -> Iterator[list[Task]]:
    yield first
    yield from rest


async def taught_banks(
    folder: RunFolder, journal: Journal, arm: GuidedArm, prefix: str, open_banks: ExitStack
) -> list[Guide]:
    """The guides of an arm, one for each fold. Its teacher's alarms are what they learn from; the databases
    are named by `prefix`.

    Labels play no part: in use a bank has none. The banks are filled in the same order whenever a run is
    taken up again, so that the same guidance is given.
    """
    banks = [
        open_banks.enter_context(open_store(f"{prefix}-{fold}.sqlite")).bank for fold in range(arm.folds)
    ]
    repeat, seed = folder.plan.sittings[0]
    for chosen in chosen_records(folder.plan, folder.base):
        case = Case(chosen.record, chosen.dataset, repeat, seed)
        held = await arm.teacher.hold(case, ReplayedVoices(journal, case.key(arm.teacher.name)))
        if held.error is not None or not held.result.alarm or not held.result.patterns:
            continue
        # When a circle sat differs from run to run, and would differ in what the bank keeps.
        result = held.result.model_copy(update={"started_at": 0.0})
        own = arm.fold_of(case)
        for fold, bank in enumerate(banks):
            if fold != own:
                await asyncio.to_thread(store_fire_circle_patterns, result, chosen.record.id, bank)
    return list(banks)
