"""Worker processes for embedded arms: they are a matter of CPU alone, and one process uses one core."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from firecircle.lab.arms import Arm, Unwatched, build_arms
from firecircle.lab.plan import Plan
from firecircle.lab.runs.judging import Task, as_record, judge_with, with_earlier
from firecircle.lab.runs.kept import KeptRecord


@dataclass(slots=True)
class _Worker:
    """What a worker process keeps between tasks."""

    run_id: str
    arms: dict[str, Arm]
    loop: asyncio.AbstractEventLoop


_worker: _Worker | None = None


def open_pool(plan: Plan, run_id: str, workers: int) -> ProcessPoolExecutor:
    """Processes that know the plan. They are started afresh: threads and forks do not go together."""
    return ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(plan, run_id),
    )


def _begin(plan: Plan, run_id: str) -> None:
    global _worker
    # Ctrl-C reaches the whole group; only the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    _worker = _Worker(run_id, {arm.name: arm for arm in build_arms(plan)}, asyncio.new_event_loop())


def _leave_with_parent() -> None:
    """A parent that was killed cannot tell its children; they would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def judge_tasks(tasks: Sequence[Task]) -> list[KeptRecord]:
    """Judge these in a worker; what comes back is packed for the journal."""
    assert _worker is not None
    return _worker.loop.run_until_complete(_judge_all(_worker, tasks))


async def _judge_all(worker: _Worker, tasks: Sequence[Task]) -> list[KeptRecord]:
    kept: list[KeptRecord] = []
    for task in tasks:
        case = task.case
        for name in task.arms:
            arm = worker.arms[name]
            outcome = await judge_with(arm, case, Unwatched())
            case = with_earlier(case, name, outcome)
            kept.append(KeptRecord.of(as_record(worker.run_id, task, arm, outcome), task.chosen.place))
    return kept
