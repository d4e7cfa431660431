"""One record under some of the arms, here or, for embedded arms, in worker processes that use every core."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from firecircle.engine.journal import RecordRow
from firecircle.errors import ConfigError
from firecircle.lab.arms.arm import Arm, Case, CaseVoices, Unwatched
from firecircle.lab.files import follow_parent
from firecircle.lab.plan import Plan
from firecircle.lab.records import Outcome, RunRecord
from firecircle.lab.runs.cases import ChosenRecord
from firecircle.lab.runs.journal import row_of


@dataclass(frozen=True, slots=True)
class Task:
    """A record in one sitting, with the names of the arms that have yet to judge it."""

    chosen: ChosenRecord
    repeat: int
    plan_seed: int
    arms: tuple[str, ...]
    earlier: Mapping[str, Outcome]
    """What other arms made of it, for those that refer to them."""

    @property
    def case(self) -> Case:
        """As the arms see it."""
        return Case(self.chosen.record, self.chosen.dataset, self.repeat, self.plan_seed, self.earlier)


async def judge_with(arm: Arm, case: Case, voices: CaseVoices) -> Outcome:
    """The outcome; a record that this arm cannot take, such as one without the layer in focus, has failed."""
    try:
        return await arm.judge(case, voices)
    except ConfigError as unsuitable:
        return Outcome(status="failed", error=str(unsuitable))


def as_record(run_id: str, task: Task, arm: Arm, outcome: Outcome) -> RunRecord:
    """The outcome with whose it is."""
    record = task.chosen.record
    return RunRecord(
        run_id=run_id,
        arm=arm.name,
        kind=arm.kind,
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


def with_earlier(case: Case, name: str, outcome: Outcome) -> Case:
    """The case as the next arm sees it."""
    return replace(case, earlier={**case.earlier, name: outcome})


class Cluster(Protocol):
    """Workers beyond this process. They hold circles; who is asked, and what that costs, stays here."""

    workers_lost: int
    """How many died so far."""

    def takes(self, arm: Arm) -> bool:
        """Whether a worker can judge under this arm."""
        ...

    async def judge_tasks(self, tasks: Sequence[Task]) -> list[RecordRow]:
        """Judge records under embedded arms."""
        ...

    async def judge(self, arm: Arm, case: Case, voices: CaseVoices) -> Outcome:
        """Judge a case; `WorkerLost` if it has to be done again."""
        ...


Clusters = Callable[[str, Sequence[Arm]], AbstractAsyncContextManager[Cluster]]
"""Opens a cluster for the arms of a run."""


@dataclass(slots=True)
class _Worker:
    """What a worker process keeps between tasks."""

    run_id: str
    arms: dict[str, Arm]
    loop: asyncio.AbstractEventLoop


_worker: _Worker | None = None


def open_pool(plan: Plan, run_id: str, seats: tuple[str, ...], workers: int) -> ProcessPoolExecutor:
    """Processes that know the plan. They are started afresh: threads and forks do not go together."""
    return ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(plan, run_id, seats),
    )


def _begin(plan: Plan, run_id: str, seats: tuple[str, ...]) -> None:
    from firecircle.lab.arms.building import build_arms  # heavy, and only workers need it here

    global _worker
    follow_parent()
    _worker = _Worker(run_id, {arm.name: arm for arm in build_arms(plan, seats)}, asyncio.new_event_loop())


def judge_tasks(tasks: Sequence[Task]) -> list[RecordRow]:
    """Judge these in a worker; what comes back is packed for the journal."""
    assert _worker is not None
    return _worker.loop.run_until_complete(_judge_all(_worker, tasks))


async def _judge_all(worker: _Worker, tasks: Sequence[Task]) -> list[RecordRow]:
    return [row for task in tasks for row in await judge_task(worker.run_id, worker.arms, task)]


async def judge_task(run_id: str, arms: Mapping[str, Arm], task: Task) -> list[RecordRow]:
    """One record under all its embedded arms, in the plan's order."""
    rows: list[RecordRow] = []
    case = task.case
    for name in task.arms:
        outcome = await judge_with(arms[name], case, Unwatched())
        case = with_earlier(case, name, outcome)
        rows.append(row_of(as_record(run_id, task, arms[name], outcome), task.chosen.place))
    return rows
