"""Carrying a scan out on all cores of this machine: shards to processes that read, judge and write."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from multiprocessing.sharedctypes import Synchronized
from typing import Protocol

from firecircle.engine.workers import follow_parent
from firecircle.errors import StoreError
from firecircle.lab.scan.screening import Screener, ScreeningJob, Shard, ShardReport

SHARDS_PER_WORKER = 2
"""Handed out in advance, so that no worker waits for the next one."""
TICK_SECONDS = 0.25
MOST_DEATHS = 3
"""How often workers may die without a shard being finished in between."""


@dataclass(slots=True)
class ShardSource:
    """The shards that are still to do, cut as they are asked for: nobody counts rows beforehand."""

    files: int
    rows_each: int
    finished: frozenset[tuple[int, int]]
    most_rows: Sequence[int | None] = ()
    """How many rows each file has at most, as far as anybody knows."""
    _next: tuple[int, int] = (0, 0)
    _returned: list[Shard] = field(default_factory=list)
    _ended: set[int] = field(default_factory=set)

    @property
    def is_bounded(self) -> bool:
        """Whether it is known of every file how long it is at most."""
        return bool(self.most_rows) and None not in self.most_rows

    def take(self) -> Shard | None:
        """The next one, or None when there is none for now: a file may still prove longer."""
        if self._returned:
            return self._returned.pop()
        file, number = self._next
        while file < self.files:
            if file in self._ended or number * self.rows_each >= self._most(file):
                file, number = file + 1, 0
                continue
            self._next = (file, number + 1)
            if (file, number) not in self.finished:
                return Shard(file, number, number * self.rows_each, self.rows_each)
            number += 1
        self._next = (file, number)
        return None

    def _most(self, file: int) -> float:
        most = self.most_rows[file] if self.most_rows else None
        return inf if most is None else most

    def give_back(self, shards: list[Shard]) -> None:
        """Those that a lost worker had."""
        self._returned += sorted(shards, key=lambda shard: shard.name, reverse=True)

    def note(self, report: ShardReport) -> None:
        """Learn where a file ends."""
        if report.is_last:
            self._ended.add(report.shard.file)


class Engine(Protocol):
    """Whoever has shards screened."""

    def screened(self, job: ScreeningJob, source: ShardSource) -> Iterator[ShardReport | int]:
        """Reports as they come; in between, several times a second, how many rows are under way."""
        ...


@dataclass(frozen=True, slots=True)
class Processes:
    """Worker processes on this machine."""

    workers: int

    def screened(self, job: ScreeningJob, source: ShardSource) -> Iterator[ShardReport | int]:
        """A worker that dies costs its shard, which another one does again."""
        deaths = 0
        while True:
            under_way: dict[Future[ShardReport], Shard] = {}
            context = multiprocessing.get_context("spawn")
            rows: Synchronized[int] = context.Value("q", 0)
            pool = ProcessPoolExecutor(self.workers, context, _begin, (job, rows))
            try:
                for report in self._rounds(pool, rows, under_way, source):
                    deaths = 0 if isinstance(report, ShardReport) else deaths
                    yield report
                pool.shutdown()
                return
            except BrokenProcessPool:
                deaths += 1
                if deaths >= MOST_DEATHS:
                    lost = ", ".join(sorted(shard.name for shard in under_way.values()))
                    raise StoreError(
                        f"worker processes were killed {deaths} times at {lost} (out of memory?); give fewer"
                        " --workers and the same command: finished shards are kept"
                    ) from None
                source.give_back(list(under_way.values()))
            finally:
                _end(pool)

    def _rounds(
        self,
        pool: ProcessPoolExecutor,
        rows: Synchronized[int],
        under_way: dict[Future[ShardReport], Shard],
        source: ShardSource,
    ) -> Iterator[ShardReport | int]:
        reported = 0
        while True:
            while len(under_way) < self.workers * SHARDS_PER_WORKER and (shard := source.take()):
                under_way[pool.submit(_screen, shard)] = shard
            if not under_way:
                return
            done, _ = wait(under_way, TICK_SECONDS, FIRST_COMPLETED)
            for future in done:
                report = future.result()
                del under_way[future]
                source.note(report)
                reported += report.rows
                yield report
            yield max(0, rows.value - reported)


def _end(pool: ProcessPoolExecutor) -> None:
    """Whatever happened, no worker stays behind."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        with suppress(OSError, AttributeError):
            process.terminate()


_screener: Screener | None = None
_rows: Synchronized[int] | None = None


def _begin(job: ScreeningJob, rows: Synchronized[int]) -> None:
    global _screener, _rows
    follow_parent()
    _rows = rows
    _screener = Screener(job)


def _screen(shard: Shard) -> ShardReport:
    assert _screener is not None
    return _screener.screen(shard, _count_row)


def _count_row() -> None:
    assert _rows is not None
    with _rows.get_lock():
        _rows.value += 1


def usual_workers() -> int:
    """One for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
