"""The allowance of a rival protocol: as many tokens as its circle took on the same record.

If tokens are not counted, as many calls. A protocol continues in whole steps, so it comes within a step of
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firecircle.circle.result import CallRecord
from firecircle.lab.arms.arm import Case
from firecircle.names import is_embedded

if TYPE_CHECKING:
    from firecircle.lab.arms.circle import CircleArm

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
