"""Judge cases that a repeated command continues; until all are done, a journal is below the user's data."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from firecircle.engine.capacity import Limits
from firecircle.engine.journal import Journal, JudgementKey, exclusive_lock
from firecircle.engine.judging import Arm, Ledger, judge_many
from firecircle.engine.voices import JournaledVoices, Watch
from firecircle.errors import ConfigError
from firecircle.settings import user_folder


@dataclass(frozen=True, slots=True)
class Made:
    """What came of the cases, by arm and number, and what all starts together took."""

    results: dict[tuple[str, int], Any]
    tokens: int
    cost_usd: float
    stopped: str | None
    """Why it ended before the last case."""


async def judge_resumably(
    name: str,
    arms: Sequence[Arm],
    cases: Sequence[Any],
    decisive: Sequence[str],
    limits: Limits,
    on_case: Callable[[int], None] = lambda _: None,
) -> Made:
    """Judge each case under each arm. `decisive` is everything that shapes the answers.

    It names the journal, which is below the user's data and is deleted when every case is judged.
    """
    digest = hashlib.sha256("\0".join(decisive).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    folder = user_folder("data") / name / digest
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    busy = ConfigError(None, "another process is doing the same", "wait for it")
    with exclusive_lock(folder / "lock", busy), Journal(folder / "journal.sqlite") as journal:
        journal.forget_mendable()
        ledger = _Resumable(name, journal, cases, on_case, journal.spent())
        ending = await judge_many(arms, ledger, limits)
        made = Made(ledger.results, *journal.spent(), ending.stopped)
    if made.stopped is None:
        shutil.rmtree(folder, ignore_errors=True)
    return made


@dataclass(frozen=True, slots=True)
class _Task:
    number: int
    arms: tuple[str, ...]


@dataclass
class _Resumable(Ledger[_Task]):
    """Results by arm and case; calls that the journal has are not made again."""

    name: str
    journal: Journal
    cases: Sequence[Any]
    on_case: Callable[[int], None]
    spent: tuple[int, float]
    results: dict[tuple[str, int], Any] = field(default_factory=dict)

    def tasks(self, arms: Sequence[str]) -> Iterator[_Task]:
        """Each case, under all arms one after another."""
        return (_Task(number, tuple(arms)) for number in range(len(self.cases)))

    def case(self, task: _Task) -> Any:
        """The case."""
        return self.cases[task.number]

    def voices(self, task: _Task, arm: str, watch: Watch) -> JournaledVoices:
        """The voices, journaled."""
        return JournaledVoices(
            journal=self.journal,
            key=JudgementKey(arm, 1, self.name, str(task.number)),
            watch=watch,
        )

    async def keep(self, task: _Task, arm: str, made: Any) -> None:
        """Remember the result; its calls are on disk."""
        self.results[arm, task.number] = made
        self.on_case(len(self.results))
