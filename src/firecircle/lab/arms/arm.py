"""What an arm is, how it judges a record, and the length that rivals must match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from firecircle.circle.events import Listener
from firecircle.circle.result import CallRecord
from firecircle.circle.voice import Voice
from firecircle.engine.journal import JudgementKey, derive_seed
from firecircle.lab.datasets import Record
from firecircle.lab.records import Outcome
from firecircle.names import is_embedded

if TYPE_CHECKING:
    from firecircle.lab.arms.circle import CircleArm

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


MOST_CALLS = 2
"""The limit in multiples of the circle's calls, however cheap the rival's questions are."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The allowance in one case."""

    calls: int
    tokens: int | None = None
    """None if calls count: the plan says how many, or tokens are unknown."""

    def steps(self, taken: int, calls: Sequence[CallRecord]) -> int:
        """The number of steps it covers, at the cost per step so far."""
        spent = tokens_of(calls)
        if self.tokens is None or not spent:
            return self.calls
        return min(MOST_CALLS * self.calls, max(1, round(self.tokens * taken / spent)))

    def leaves(self, calls: Sequence[CallRecord], *, next_calls: int, next_tokens: float) -> bool:
        """Whether, after these calls, this much more is allowed."""
        spent = tokens_of(calls)
        if self.tokens is None or not spent:
            return len(calls) + next_calls <= self.calls
        return spent + next_tokens <= self.tokens and len(calls) + next_calls <= MOST_CALLS * self.calls


@dataclass(frozen=True, slots=True)
class Matching:
    """As many calls as the plan says, otherwise what an earlier circle takes."""

    planned: int | None = None
    circle: CircleArm | None = None

    def in_case(self, case: Case) -> Allowance:
        """For a record that the circle has judged."""
        if self.circle is None:
            return Allowance(self.planned or 1)
        outcome = case.earlier[self.circle.name]
        return self._allow(outcome.rounds, outcome.tokens_in + outcome.tokens_out)

    async def at_most(self, case: Case) -> Allowance:
        """For a record that the circle has not judged yet: as if every round took place."""
        if self.circle is None:
            return Allowance(self.planned or 1)
        calls = await self.circle.rehearse(case)
        return self._allow(max(call.round_number for call in calls), tokens_of(calls))

    def _allow(self, rounds: int, tokens: int) -> Allowance:
        assert self.circle is not None
        paid = [model for model in self.circle.config.models if not is_embedded(model)]
        return Allowance(len(paid) * max(1, rounds), tokens or None)


def tokens_of(calls: Sequence[CallRecord]) -> int:
    """Input and output, as far as known."""
    return sum((call.tokens_in or 0) + (call.tokens_out or 0) for call in calls)
