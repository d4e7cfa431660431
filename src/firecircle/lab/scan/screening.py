"""Screening a corpus: its shards are read, judged by the embedded circle, and written whole, by all cores."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any, TextIO

from firecircle.circle.columns import cells_of
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.result import CallRecord
from firecircle.convene import SeatedCircle, seat_circle
from firecircle.engine.capacity import Limits
from firecircle.engine.judging import Ledger, judge_many
from firecircle.engine.workers import Workers
from firecircle.errors import ConfigError, EvaluationError, StoreError
from firecircle.lab.datasets import BadRow, Record
from firecircle.lab.parquet import lines_to_parquet
from firecircle.lab.scan.corpus import COLUMNS, CorpusFile, FileCursor, ScanFolder
from firecircle.lab.scan.summary import ScanSummary, summarise, write_summary
from firecircle.languages import unread_languages
from firecircle.metrics import ReciprocityMetrics, metrics_of_circle
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.telling.patterns import gathered_quotes

LONGEST_TEXT = 160
LONGEST_QUOTE = 300
SEED = 0
"""The same for all: embedded voices do not read the marks that it decides."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Some rows of one file."""

    file: int
    number: int
    """Within the file, from 0."""
    rows: tuple[Record | BadRow, ...]
    arms: tuple[str, ...] = ("readers",)

    @property
    def name(self) -> str:
        """The file it becomes."""
        return f"{self.file:05d}-{self.number:06d}.parquet"


@dataclass(frozen=True, slots=True)
class ScreeningJob:
    """What every worker has to know."""

    files: tuple[CorpusFile, ...]
    config: FireCircleConfig
    shared: MultiNeutrosophicPrompt
    """The layers of prompts that have none of their own."""
    folder: str
    """Where the shards go."""


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What came of a shard."""

    rows: int
    verdicts: Counter[str] = field(default_factory=Counter)
    cpu_seconds: float = 0.0


class Screener:
    """Judges shards, one after another, in the process that made it."""

    def __init__(self, job: ScreeningJob, judged: Synchronized[int] | None = None) -> None:
        """`judged` counts rows for the process that started this one."""
        self._job, self._judged_rows = job, judged
        self._circle: SeatedCircle = seat_circle(job.config)
        self._loop = asyncio.new_event_loop()

    def do(self, piece: Sequence[Shard]) -> list[ShardReport]:
        """Judge shards and write each whole."""
        return [self._screen(shard) for shard in piece]

    def _screen(self, shard: Shard) -> ShardReport:
        cpu = time.process_time()
        verdicts: Counter[str] = Counter()
        target = Path(self._job.folder) / shard.name
        try:
            with tempfile.TemporaryDirectory(dir=self._job.folder, prefix=".shard-") as folder:
                lines = Path(folder) / "rows.jsonl"
                with lines.open("w", encoding="utf-8") as file:
                    self._loop.run_until_complete(self._judge(shard.rows, shard.file, file, verdicts))
                lines_to_parquet(lines, COLUMNS, target)
        except OSError as full:
            raise StoreError(f"{target}: cannot be written: {full.strerror or full}") from None
        return ShardReport(len(shard.rows), verdicts, time.process_time() - cpu)

    async def _judge(
        self,
        rows: Iterable[Record | BadRow],
        of_file: int,
        lines: TextIO,
        verdicts: Counter[str],
    ) -> None:
        """Write a line for each row, and count what was said."""
        for row in rows:
            cells = await self._judged(row, of_file)
            lines.write(json.dumps(cells) + "\n")
            verdicts[str(cells["verdict"])] += 1
            if self._judged_rows is not None:
                with self._judged_rows.get_lock():
                    self._judged_rows.value += 1

    async def _judged(self, row: Record | BadRow, file: int) -> dict[str, object]:
        """The cells of one row."""
        source = self._job.files[file]
        if isinstance(row, BadRow):
            name = f"{source.dataset}:{row.line}"
            return {
                "file": source.path,
                "row": row.line,
                "id": name,
                "verdict": "no_verdict",
                "error": row.reason,
            }
        record = row.completed(self._job.shared)
        known = {
            "file": source.path,
            "row": record.row,
            "id": record.id,
            "label": record.label,
            "text": beginning_of(record.prompt),
        }
        try:
            metrics = metrics_of_circle(await self._circle.run(record.prompt, seed=SEED))
        except (EvaluationError, ConfigError) as failed:
            return {**known, "verdict": "no_verdict", "error": str(failed)}
        return {**known, **cells_of_prompt(metrics, record.prompt)}


def cells_of_prompt(metrics: ReciprocityMetrics, prompt: MultiNeutrosophicPrompt) -> dict[str, object]:
    """What a judgement says, for the columns of a shard."""
    return {
        **cells_of(metrics.judgement, "scan"),
        "patterns": list(dict.fromkeys(pattern.pattern_type for pattern in metrics.patterns)),
        "quotes": [
            {
                "pattern": pattern.pattern_type,
                "layer": quote.place.layer,
                "quote": quote.place.text[:LONGEST_QUOTE],
            }
            for pattern in metrics.all_patterns
            for quote in gathered_quotes(pattern.evidence)
        ],
        "unread": [name for name, _ in unread_languages(prompt).most_common()] if metrics.unread else [],
    }


def beginning_of(prompt: MultiNeutrosophicPrompt) -> str:
    """The first words of the lowest layer that has any, on one line."""
    texts = (prompt.user, prompt.application, prompt.system)
    text = next((text for text in texts if text.strip()), "")
    return " ".join(text[: 4 * LONGEST_TEXT].split())[:LONGEST_TEXT]


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
