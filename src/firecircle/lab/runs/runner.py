"""Carrying out a run: its journal and tally are the ledger by which `judge_many` judges its records."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from firecircle.circle.panel import Guide
from firecircle.circle.voice import Retry, Usage
from firecircle.engine.capacity import Limits, SharedBudget
from firecircle.engine.journal import Journal, RecordRow
from firecircle.engine.judging import Ledger, Spending, judge_many
from firecircle.engine.voices import ReplayedVoices, Watch
from firecircle.engine.workers import Processes, Workers
from firecircle.lab.arms.arm import Arm, Case
from firecircle.lab.arms.circle import GuidedArm
from firecircle.lab.records import Outcome, RunJournal, row_of, unpack_record
from firecircle.lab.runs.cases import Tally, chosen_records
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.runs.judging import Clusters, RunVoices, RunWorker, Task, as_record, as_sent, judge_with
from firecircle.lab.runs.live import LiveCircles
from firecircle.lab.runs.store_sync import sync_store
from firecircle.names import is_embedded
from firecircle.store.bank.entries import store_fire_circle_patterns
from firecircle.store.opening import Store, open_store
from firecircle.voices.hosted.batches import BatchDesk
from firecircle.voices.outages import Pause

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
    """Judgements that failed because of network, limit or server: the same command runs them again."""
    hurt_in_passing: int = 0
    """Judgements that lost a voice for such a reason; likewise."""
    table_rewritten: bool = False
    """Whether the table of a finished run was damaged, and was written again from the journal."""


async def carry_out(
    folder: RunFolder,
    arms: Sequence[Arm],
    follow: Follower,
    store: Store | None = None,
    *,
    embedded_too: bool = False,
    clusters: Clusters | None = None,
) -> RunState:
    """Have the arms of the run's plan do everything that is not done yet. Call with the folder held.

    Arms that cost nothing judge on a cluster, if there is one, else in processes; all others here.

    Hosted and local circles are written into the store, if there is one, while they sit; embedded ones, where
    that is asked for, at the end.
    """
    plan = folder.plan
    calls = QUESTIONS_IN_BATCHES if plan.concurrency.batch else plan.concurrency.calls
    limits = Limits(calls, tokens=plan.budget.tokens, usd=plan.budget.usd)
    with RunJournal(folder.journal) as journal:
        tally = Tally.of(journal, (arm.name for arm in arms), folder.total)
        live = LiveCircles(store, folder.about, embedded_too=embedded_too)
        ledger = _RunLedger(folder, arms, journal, tally, follow, live)
        follow(tally)
        taught = tuple(arm for arm in arms if isinstance(arm, GuidedArm))
        others = tuple(arm for arm in arms if arm not in taught)
        try:
            await _require_enough(ledger, others, limits)
            async with _workers(plan.workers, (folder.about.run_id, as_sent(others)), clusters) as workers:
                ending = await judge_many(others, ledger, limits, workers)
            if (
                taught
                and not ending.stopped
                and any(True for _ in ledger.tasks([arm.name for arm in taught]))
            ):
                # After the circles they learn from: what these said is in the journal and costs nothing.
                with _taught(ledger, taught) as ready:
                    ending = await judge_many(await ready, ledger, limits)
        finally:
            folder.note_pause(None)
            await live.written()
        not_stored = await sync_store(folder, journal, arms, live)
        remedy = ending.remedy and f"{ending.remedy}: the run goes on".replace(
            "raise the budget", "raise [budget] in the plan"
        )
        return RunState(tally, ending.stopped, not_stored, remedy, *journal.mendable())


@asynccontextmanager
async def _workers(
    count: int, work: tuple[str, Sequence[Arm]], clusters: Clusters | None
) -> AsyncIterator[Workers]:
    """Who judges under arms that cost nothing; a cluster is not opened for none."""
    if clusters is not None and work[1]:
        async with clusters(RunWorker, work) as cluster:
            yield cluster
    else:
        with Processes(count, RunWorker, *work) as processes:
            yield processes


async def _require_enough(ledger: _RunLedger, arms: Sequence[Arm], limits: Limits) -> None:
    """Refuse to begin a run whose budget one record may exceed."""
    paid = {arm.name: arm for arm in arms if not all(map(is_embedded, arm.models))}
    first = next(ledger.tasks(tuple(paid)), None) if limits.is_budget and paid else None
    if first is not None:
        calls = [call for name in first.arms for call in await paid[name].rehearse(first.case)]
        SharedBudget(limits, *ledger.spent).require_enough_for(calls)


@contextmanager
def _taught(ledger: _RunLedger, arms: Sequence[GuidedArm]) -> Iterator[Awaitable[list[Arm]]]:
    """The arms with banks that have learnt from the circles of their teachers."""

    async def teach() -> list[Arm]:
        return [
            arm.guided_by(
                await taught_banks(ledger.folder, ledger.journal, arm, f"{place}/{number}", open_banks)
            )
            for number, arm in enumerate(arms)
        ]

    with (
        tempfile.TemporaryDirectory(dir=ledger.folder.path, prefix=".banks-") as place,
        ExitStack() as open_banks,
    ):
        yield teach()


class _RunLedger(Ledger[Task]):
    """A run's journal, its tally, and the store where its circles are listed while they sit."""

    def __init__(
        self,
        folder: RunFolder,
        arms: Sequence[Arm],
        journal: Journal,
        tally: Tally,
        follow: Follower,
        live: LiveCircles,
    ) -> None:
        self.folder, self.plan, self.journal = folder, folder.plan, journal
        self.tally, self.follow, self.live = tally, follow, live
        self.kinds = {arm.name: arm.kind for arm in arms}
        self.desk = BatchDesk(folder.path / "batches.jsonl") if self.plan.concurrency.batch else None

    @property
    def spent(self) -> tuple[int, float]:  # type: ignore[override]  # it grows while the run goes
        """Tokens and money so far."""
        return self.tally.spent_tokens, self.tally.spent_usd

    def tasks(self, arms: Sequence[str]) -> Iterator[Task]:
        """What these arms have not judged yet."""
        if all(self.tally.arms[name].records >= self.tally.total for name in arms):
            return
        for repeat, seed in self.plan.sittings:
            for chosen in chosen_records(self.plan, self.folder.base):
                done = self.journal.judged_by(repeat, chosen.place)
                missing = tuple(name for name in arms if name not in done)
                if missing:
                    earlier: dict[str, Outcome] = {
                        name: unpack_record(done[name]) for name in arms if name in done
                    }
                    yield Task(chosen, repeat, seed, missing, earlier)

    def case(self, task: Task) -> Case:
        """The record with what other arms made of it."""
        return task.case

    def voices(self, task: Task, arm: str, watch: Watch) -> RunVoices:
        """Voices whose circles are written into the store while they sit."""
        return RunVoices(
            journal=self.journal,
            key=task.case.key(arm),
            watch=watch,
            case=task.case,
            live=self.live,
            desk=self.desk,
        )

    async def judge(self, arm: Any, case: Case, voices: RunVoices) -> Outcome:
        """The outcome; that an arm cannot take a record is one, too."""
        return await judge_with(arm, case, voices)

    async def keep(self, task: Task, arm: str, made: Outcome) -> None:
        """Journal what an arm made of a record; the arms after it may look at that."""
        task.earlier[arm] = made
        record = as_record(self.folder.about.run_id, task, arm, self.kinds[arm], made)
        await self.keep_piece([row_of(record, task.chosen.place)])

    async def keep_piece(self, done: Sequence[RecordRow]) -> None:
        """Journal judged records and count them."""
        await self.journal.write_records(done)
        self.tally.add(done)
        self.follow(self.tally)

    def counting(self, arm: str) -> AbstractContextManager[Callable[[Usage], None]]:
        """Counts calls for the tally of the arm."""
        return self.tally.arms[arm].counting()

    def progressed(self, spending: Spending) -> None:
        """Show what is spent and under way."""
        self.tally.spent_tokens, self.tally.spent_usd = spending.tokens, spending.usd
        self.tally.calls_under_way, self.tally.calls_allowed = (
            spending.calls_under_way,
            spending.calls_allowed,
        )
        self.follow(self.tally)

    def retried(self, retry: Retry) -> None:
        """Count it, and show why."""
        self.tally.retries += 1
        self.tally.notes = [*self.tally.notes, retry.reason][-NOTES_KEPT:]
        self.follow(self.tally)

    def paused(self, pause: Pause | None) -> None:
        """Show it, also to other processes."""
        self.tally.pause = pause
        self.folder.note_pause(pause)
        self.follow(self.tally)

    def lost_workers(self, count: int) -> None:
        """Count the workers that died."""
        self.tally.workers_lost = count


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
        held = await arm.teacher.run(case, ReplayedVoices(journal, case.key(arm.teacher.name)))
        if held.error is not None or not held.result.alarm or not held.result.patterns:
            continue
        # When a circle sat differs from run to run, and would differ in what the bank keeps.
        result = held.result.model_copy(update={"started_at": 0.0})
        own = arm.fold_of(case)
        for fold, bank in enumerate(banks):
            if fold != own:
                await asyncio.to_thread(store_fire_circle_patterns, result, chosen.record.id, bank)
    return list(banks)
