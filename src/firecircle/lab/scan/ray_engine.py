"""A scan by Ray Data: every shard is a row of a dataset, and a pool of actors screens them.

Corpus and folder must be where every machine of the cluster sees them, under the same path.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from firecircle.errors import StoreError
from firecircle.lab.cluster.ray_cluster import ray_running
from firecircle.lab.scan.engine import ShardSource
from firecircle.lab.scan.screening import Screener, ScreeningJob, Shard, ShardReport

WAVE = 20_000
"""Shards in one dataset, so that the driver's memory does not grow with the corpus."""
WAVE_OF_UNKNOWN = 4
"""The same for each worker, where nobody knows where a file ends."""


class _Screening:
    """What an actor of the pool does."""

    def __init__(self, job: bytes) -> None:
        self._screener = Screener(pickle.loads(job))

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Screen the shard of this row."""
        shard: Shard = pickle.loads(row["shard"])
        return {"report": pickle.dumps(self._screener.screen(shard))}


@dataclass(frozen=True, slots=True)
class RayData:
    """The workers of a Ray cluster. One that dies is replaced by Ray, and its shard is done again."""

    workers: int
    address: str | None = None

    def screened(self, job: ScreeningJob, source: ShardSource) -> Iterator[ShardReport | int]:
        """Reports as they come."""
        with ray_running(self.workers, self.address) as ray:
            ray_data: Any = import_module("ray.data")

            logging.getLogger("ray.data").setLevel(logging.ERROR)
            context = ray_data.DataContext.get_current()
            context.enable_progress_bars = False
            packed = pickle.dumps(job)
            while wave := self._wave(source):
                rows = [{"shard": pickle.dumps(shard)} for shard in wave]
                dataset = ray_data.from_items(rows, override_num_blocks=len(rows)).map(
                    _Screening,
                    fn_constructor_args=(packed,),
                    compute=ray_data.ActorPoolStrategy(size=min(self.workers, len(rows))),
                    num_cpus=1,
                )
                try:
                    for row in dataset.iter_rows():
                        report: ShardReport = pickle.loads(row["report"])
                        source.note(report)
                        yield report
                except ray.exceptions.RayError as failed:
                    why = str(failed).strip().splitlines()
                    raise StoreError(f"Ray could not go on: {why[-1] if why else failed}") from None

    def _wave(self, source: ShardSource) -> list[Shard]:
        """The shards to do next. What is surely there is not mixed with what may lie beyond a file's end."""
        wave: list[Shard] = []
        most = WAVE if source.is_bounded else WAVE_OF_UNKNOWN * self.workers
        while len(wave) < most and (shard := source.take()):
            wave.append(shard)
        return wave
