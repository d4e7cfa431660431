"""A scan from its first shard to its summary, told to whoever follows it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from firecircle.circle.config import FireCircleConfig
from firecircle.lab.scan.corpus import CorpusFile
from firecircle.lab.scan.engine import Engine, ShardSource
from firecircle.lab.scan.folder import ScanFolder
from firecircle.lab.scan.screening import ScreeningJob, ShardReport
from firecircle.lab.scan.summary import ScanSummary, summarise, write_summary
from firecircle.prompt import MultiNeutrosophicPrompt


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


def carry_out(
    folder: ScanFolder,
    files: tuple[CorpusFile, ...],
    config: FireCircleConfig,
    shared: MultiNeutrosophicPrompt,
    shard_rows: int,
    engine: Engine,
    *,
    top: int,
    follow: Follower,
) -> tuple[ScanSummary, ScanProgress]:
    """Have everything screened that is not yet, and write what it comes to. Call with the folder held."""
    finished = folder.finished()
    known = [file.rows for file in files]
    progress = ScanProgress(None if None in known else sum(rows or 0 for rows in known))
    progress.before = rows_in(folder)
    source = ShardSource(len(files), shard_rows, frozenset(finished), tuple(file.most_rows for file in files))
    job = ScreeningJob(files, config, shared, str(folder.shards.resolve()))
    broken: dict[str, str] = {}
    follow(progress)
    for report in engine.screened(job, source):
        if isinstance(report, ShardReport):
            progress.screened += report.rows
            progress.shards += bool(report.rows)
            progress.verdicts += report.verdicts
            progress.cpu_seconds += report.cpu_seconds
            if report.broken:
                broken[files[report.shard.file].path] = report.broken
        else:
            progress.under_way = report
        follow(progress)
    summary = summarise(folder, top, broken)
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
