"""What every arm is: it judges one case, through voices that somebody may watch over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from firecircle.circle.events import Listener
from firecircle.circle.result import CallRecord
from firecircle.circle.voice import Voice
from firecircle.engine.journal import JudgementKey, derived_seed
from firecircle.lab.datasets import Record
from firecircle.lab.records import Outcome

FIRST, SECOND = "/first", "/second"
"""What the names of a cascade's two circles end with."""


@dataclass(frozen=True, slots=True)
class Case:
    """One record, for the how-manieth time, and what the arms before made of it."""

    record: Record
    dataset: str
    repeat: int
    plan_seed: int
    earlier: Mapping[str, Outcome] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """Follows from the plan's seed, the repeat and the record, and is the same for all arms: what is
        asked is then the same byte for byte, also when a run is taken up again."""
        key = f"{self.plan_seed}/{self.repeat}/{self.dataset}/{self.record.id}"
        return derived_seed(key)

    def key(self, arm: str) -> JudgementKey:
        """What an arm's judgement of it goes by in the journal."""
        return JudgementKey(arm, self.repeat, self.dataset, self.record.id)


class CaseVoices(Protocol):
    """The voices of one case as they are to be asked, for instance journaled, and who follows its circles."""

    def seat(self, model: str, voice: Voice) -> Voice:
        """The voice to ask instead."""
        ...

    def listener(self, circle: str, models: tuple[str, ...]) -> Listener | None:
        """Who is told what happens in this circle of the case, an arm's or a part of one; None for nobody."""
        ...

    def seconds(self) -> float:
        """How long the calls took when they were made, one round after another."""
        ...


class Unwatched:
    """Voices as they are, for arms whose calls cost nothing."""

    def seat(self, model: str, voice: Voice) -> Voice:
        """The same voice."""
        return voice

    def listener(self, circle: str, models: tuple[str, ...]) -> Listener | None:
        """Nobody."""
        return None

    def seconds(self) -> float:
        """Nothing was journaled."""
        return 0.0


class Arm(Protocol):
    """One way of judging."""

    @property
    def name(self) -> str:
        """What the plan calls it."""
        ...

    @property
    def kind(self) -> str:
        """What kind of arm it is."""
        ...

    @property
    def models(self) -> tuple[str, ...]:
        """Everybody who may be asked."""
        ...

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """The outcome for one case. A circle that fails is an outcome too; only mistakes are raised."""
        ...

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """The calls that judging this case may take; nobody is asked."""
        ...
