"""Workers judge what costs nothing but processor time: processes on this machine, or those of a cluster.

A worker is an object that is made once in each process and then does one piece of work after another. Which
provider is asked, and what that costs, never leaves the process that started them.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, Self

from firecircle.errors import StoreError

MOST_DEATHS = 3
"""How often workers may die without anything being finished in between."""
ENOUGH = 2
"""Pieces of work for each worker that are handed out in advance, so that none waits for the next."""


class Worker(Protocol):
    """What each process holds."""

    def do(self, piece: Any) -> Any:
        """Do a piece of work; it and what comes of it travel between processes."""
        ...


class Workers(Protocol):
    """Several workers."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    @property
    def lost(self) -> int:
        """How many died so far; what they did was done again."""
        ...

    async def do(self, piece: Any) -> Any:
        """Have a worker do this; again by another one if it dies."""
        ...


class Processes:
    """Worker processes on this machine. They are started afresh: threads and forks do not go together."""

    def __init__(self, count: int, start: Callable[..., Worker], *args: Any) -> None:
        self.count = count
        self.lost = 0
        self._start = start, args
        self._deaths = 0
        self._pool: ProcessPoolExecutor | None = None

    async def do(self, piece: Any) -> Any:
        """Have a worker do this; again by another one if it dies."""
        while True:
            pool = self._pool = self._pool or ProcessPoolExecutor(
                self.count, multiprocessing.get_context("spawn"), _begin, self._start
            )
            try:
                done = await asyncio.get_running_loop().run_in_executor(pool, _do, piece)
            except BrokenProcessPool:  # one that dies takes all of the pool along
                self._count_death(pool)
                continue
            self._deaths = 0
            return done

    def _count_death(self, pool: ProcessPoolExecutor) -> None:
        if self._pool is not pool:
            return
        self._pool = None
        self.lost += 1
        self._deaths += 1
        pool.shutdown(wait=False)
        if self._deaths >= MOST_DEATHS:
            raise StoreError(
                f"worker processes were killed {self._deaths} times, one after another (out of memory?);"
                " run the same command again to go on, with fewer workers"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the workers go; where something went wrong they are not waited for."""
        if self._pool is None:
            return
        if error is None:
            self._pool.shutdown()
            return
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            with suppress(OSError, AttributeError):
                process.terminate()


_worker: Worker | None = None


def _begin(start: Callable[..., Worker], args: tuple[Any, ...]) -> None:
    global _worker
    follow_parent()
    _worker = start(*args)


def _do(piece: Any) -> Any:
    assert _worker is not None
    return _worker.do(piece)


def follow_parent() -> None:
    """Leave Ctrl-C to the parent, and leave when it is gone. Call this first in a worker process."""
    # Ctrl-C reaches the whole group; only the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """A parent that was killed cannot tell its children; they would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def usual_workers() -> int:
    """One for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
