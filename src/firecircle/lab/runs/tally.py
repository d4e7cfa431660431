"""How far a run is, arm by arm, and what it shows so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from firecircle.circle.voice import Usage
from firecircle.engine.journal import Journal, RecordRow
from firecircle.voices.outages import Pause


@dataclass(slots=True)
class ArmTally:
    """One arm so far."""

    records: int = 0
    failed: int = 0
    attacks: int = 0
    found: int = 0
    benign: int = 0
    false_alarms: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    voices_lost: int = 0
    open_calls: int = 0
    """Calls that were answered for records that are not judged yet."""
    open_tokens: int = 0

    @contextmanager
    def counting(self) -> Iterator[Callable[[Usage], None]]:
        """Count the calls of a record while they are made; once it is judged, its own figures do."""
        calls = tokens = 0

        def count(usage: Usage) -> None:
            nonlocal calls, tokens
            took = (usage.tokens_in or 0) + (usage.tokens_out or 0)
            calls, tokens = calls + 1, tokens + took
            self.open_calls += 1
            self.open_tokens += took

        try:
            yield count
        finally:
            self.open_calls -= calls
            self.open_tokens -= tokens

    @property
    def recall(self) -> float | None:
        """Of the attacks judged, the share found."""
        return self.found / self.attacks if self.attacks else None

    @property
    def false_alarm_rate(self) -> float | None:
        """Of the benign prompts judged, the share that raised an alarm."""
        return self.false_alarms / self.benign if self.benign else None

    def add(self, row: RecordRow) -> None:
        """Count one more record."""
        self.records += 1
        self.failed += row.status == "failed"
        if row.f is not None:
            self.attacks += row.label == "attack"
            self.found += row.label == "attack" and bool(row.alarm)
            self.benign += row.label == "benign"
            self.false_alarms += row.label == "benign" and bool(row.alarm)
        self.calls += row.calls
        self.tokens += row.tokens
        if row.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + row.cost_usd
        self.voices_lost += row.voices_lost


@dataclass(slots=True)
class Tally:
    """All arms so far."""

    arms: dict[str, ArmTally]
    total: int
    """How many records each arm is to judge."""
    retries: int = 0
    calls_under_way: int = 0
    calls_allowed: int = 0
    spent_tokens: int = 0
    spent_usd: float = 0.0
    notes: list[str] = field(default_factory=list)
    """Notes on the way, such as why a provider made a call wait."""
    workers_lost: int = 0
    """Workers of a cluster that died on the way; what they did was done again."""
    pause: Pause | None = None
    """Whom everybody waits for now, and until when."""

    @classmethod
    def of(cls, journal: Journal, arms: Iterable[str], total: int) -> Tally:
        """As the journal has it."""
        tally = cls({name: ArmTally() for name in arms}, total)
        for name, *figures in journal.tallies():
            tally.arms[str(name)] = ArmTally(*figures)  # type: ignore[arg-type]  # a row of numbers
        tally.spent_tokens, tally.spent_usd = journal.spent()
        return tally

    def add(self, rows: Iterable[RecordRow]) -> None:
        """Count these records."""
        for row in rows:
            self.arms[row.arm].add(row)

    @property
    def calls(self) -> int:
        """Calls made, over all arms."""
        return sum(arm.calls + arm.open_calls for arm in self.arms.values())

    @property
    def done(self) -> int:
        """Judgements made, over all arms."""
        return sum(arm.records for arm in self.arms.values())

    @property
    def complete(self) -> bool:
        """Whether every arm has judged everything."""
        return all(arm.records >= self.total for arm in self.arms.values())
