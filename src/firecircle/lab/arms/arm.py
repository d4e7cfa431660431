"""The interface of every arm: it judges one case, with voices that a caller may wrap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from firecircle.circle.events import Listener
from firecircle.circle.result import CallRecord
from firecircle.circle.voice import Voice
from firecircle.engine.journal import JudgementKey, derive_seed
from firecircle.lab.datasets import Record
from firecircle.lab.records import Outcome

FIRST, SECOND = "/first", "/second"
"""The endings of the names of a cascade's two circles."""


@dataclass(frozen=True, slots=True)
class Case:
    """One record with the number of its repeat, and the earlier arms' outcomes."""

    record: Record
    dataset: str
    repeat: int
    plan_seed: int
    earlier: Mapping[str, Outcome] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """Derived from the plan's seed, the repeat and the record, and the same for all arms: the questions
        are identical, also after a run is resumed.
        """
        key = f"{self.plan_seed}/{self.repeat}/{self.dataset}/{self.record.id}"
        return derive_seed(key)

    def key(self, arm: str) -> JudgementKey:
        """The key of an arm's judgement in the journal."""
        return JudgementKey(arm, self.repeat, self.dataset, self.record.id)


class CaseVoices(Protocol):
    """The voices of one case, for instance journaled, and the listeners of its circles."""

    def seat(self, model: str, voice: Voice) -> Voice:
        """The voice to ask instead."""
        ...

    def listener(self, circle: str, models: tuple[str, ...]) -> Listener | None:
        """The listener of this circle of the case, an arm's or a part of one, if any."""
        ...

    def seconds(self) -> float:
        """How long the original calls took, one round after another."""
        ...


class Unwatched:
    """Unwrapped voices, for arms whose calls cost nothing."""

    def seat(self, model: str, voice: Voice) -> Voice:
        """The same voice."""
        return voice

    def listener(self, circle: str, models: tuple[str, ...]) -> Listener | None:
        """No listener."""
        return None

    def seconds(self) -> float:
        """Zero, because nothing is journaled."""
        return 0.0


class Arm(Protocol):
    """One way of judging."""

    @property
    def name(self) -> str:
        """The name in the plan."""
        ...

    @property
    def kind(self) -> str:
        """The kind of arm."""
        ...

    @property
    def models(self) -> tuple[str, ...]:
        """All voices that may be asked."""
        ...

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """The outcome for one case. A failed circle is an outcome too; only mistakes are raised."""
        ...

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """The calls that judging this case may take, without making them."""
        ...
