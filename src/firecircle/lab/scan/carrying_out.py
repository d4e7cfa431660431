"""A corpus judged part by part, from the first part to the summary, shown while it goes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from firecircle.circle.config import FireCircleConfig
from firecircle.circle.result import CallRecord
from firecircle.engine.judging import Ledger, judge_many
from firecircle.engine.limits import Limits
from firecircle.engine.workers import Workers
from firecircle.errors import ConfigError
from firecircle.lab.datasets import BadRow, Record
from firecircle.lab.scan.corpus import CorpusFile, FileCursor
from firecircle.lab.scan.folder import ScanFolder
from firecircle.lab.scan.screening import Shard, ShardReport
from firecircle.lab.scan.summary import ScanSummary, summarise, write_summary

TICK_SECONDS = 0.25


@dataclass(slots=True)
class ScanProgress:
    """How far a scan is."""

    total: int | None
    """About how many rows there are; None if nobody knows."""
    before: int = 0
    """Rows that an earlier command screened."""
    screened: int = 0
    """Rows of shards that this command finished."""
    under_way: int = 0
    shards: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    cpu_seconds: float = 0.0
    began: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        """Rows that are judged, written or not."""
        return self.before + self.screened + self.under_way

    @property
    def seconds(self) -> float:
        """Since this command began to screen."""
        return time.monotonic() - self.began

    @property
    def pace(self) -> float:
        """Rows a second."""
        return (self.screened + self.under_way) / max(self.seconds, 1e-9)


Follower = Callable[[ScanProgress], None]


@dataclass(frozen=True, slots=True)
class _Readers:
    """The arm: voices that cost nothing, in the workers."""

    models: tuple[str, ...]
    name: str = "readers"

    async def judge(self, case: Any, voices: Any) -> Any:
        """Only workers judge."""
        raise NotImplementedError

    async def rehearse(self, case: Any) -> tuple[CallRecord, ...]:
        """It costs nothing."""
        return ()


class _Parts(Ledger[Shard]):
    """The parts that are not on disk yet, read as workers ask for them; what they wrote is counted."""

    is_journaled = False
    piece = 1

    def __init__(
        self, folder: ScanFolder, files: Sequence[CorpusFile], rows_each: int, progress: ScanProgress
    ) -> None:
        self._files, self._rows_each = files, rows_each
        self._finished = frozenset(folder.finished())
        self.progress = progress
        self.broken: dict[str, str] = {}
        """Files that cannot be read to their end, and why."""

    def tasks(self, arms: Sequence[str]) -> Iterator[Shard]:
        """Each part with its rows; nobody counts rows beforehand."""
        for file, source in enumerate(self._files):
            cursor = FileCursor(source)
            for number in count():
                if (file, number) in self._finished:
                    continue
                rows = self._rows(cursor, source, number * self._rows_each)
                if rows:
                    yield Shard(file, number, tuple(rows))
                if len(rows) < self._rows_each:
                    break

    def _rows(self, cursor: FileCursor, source: CorpusFile, start: int) -> list[Record | BadRow]:
        try:
            return cursor.take(start, self._rows_each)
        except ConfigError as wrong:
            self.broken[source.path] = str(wrong)
        rows: list[Record | BadRow] = []
        one_by_one = FileCursor(source)
        try:
            for place in range(start, start + self._rows_each):
                rows += one_by_one.take(place, 1)
        except ConfigError as here:
            self.broken[source.path] = str(here)
        return rows

    async def keep_piece(self, done: Sequence[ShardReport]) -> None:
        """Count what is on disk now."""
        for report in done:
            self.progress.screened += report.rows
            self.progress.shards += 1
            self.progress.verdicts += report.verdicts
            self.progress.cpu_seconds += report.cpu_seconds


async def carry_out(
    folder: ScanFolder,
    files: tuple[CorpusFile, ...],
    config: FireCircleConfig,
    part_rows: int,
    workers: Workers,
    *,
    top: int,
    follow: Follower,
    judged: Callable[[], int] = lambda: 0,
) -> tuple[ScanSummary, ScanProgress]:
    """Have everything judged that is not yet, and write what it comes to. Call with the folder held.

    `judged` tells how many rows the workers have judged, written or not.
    """
    known = [file.rows for file in files]
    progress = ScanProgress(None if None in known else sum(rows or 0 for rows in known))
    progress.before = rows_in(folder)
    ledger = _Parts(folder, files, part_rows, progress)
    follow(progress)
    judging = asyncio.create_task(judge_many([_Readers(config.models)], ledger, Limits(1), workers))
    try:
        while not judging.done():
            await asyncio.wait((judging,), timeout=TICK_SECONDS)
            progress.under_way = max(0, judged() - progress.screened)
            follow(progress)
    finally:
        judging.cancel()
        await asyncio.gather(judging, return_exceptions=True)
    judging.result()
    summary = summarise(folder, top, ledger.broken)
    write_summary(folder, summary)
    return summary, progress


def rows_in(folder: ScanFolder) -> int:
    """How many rows the finished shards have."""
    import duckdb

    shards = [str(path) for path in folder.finished().values()]
    if not shards:
        return 0
    with duckdb.connect() as database:
        row = database.execute("SELECT sum(num_rows) FROM parquet_file_metadata(?)", [shards]).fetchone()
    return int(row[0] or 0) if row else 0
