"""How much a rival protocol may take: as many tokens as the circle beside it took on the same record.

Where nobody counts tokens, as many calls. A protocol goes on in whole steps, so it comes within a step of it.
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
"""In times of the circle's calls: however cheap its questions are, a rival asks no more often."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What may be taken in one case."""

    calls: int
    tokens: int | None = None
    """None where calls count: the plan says how many, or nobody knows what they cost."""

    def steps(self, taken: int, calls: Sequence[CallRecord]) -> int:
        """How many steps it is enough for, if they go on costing what those taken cost."""
        spent = tokens_of(calls)
        if self.tokens is None or not spent:
            return self.calls
        return min(MOST_CALLS * self.calls, max(1, round(self.tokens * taken / spent)))

    def leaves(self, calls: Sequence[CallRecord], *, next_calls: int, next_tokens: float) -> bool:
        """Whether, after these calls, so much more can be had."""
        spent = tokens_of(calls)
        if self.tokens is None or not spent:
            return len(calls) + next_calls <= self.calls
        return spent + next_tokens <= self.tokens and len(calls) + next_calls <= MOST_CALLS * self.calls


@dataclass(frozen=True, slots=True)
class Matching:
    """So many calls as the plan says, else what a circle before takes."""

    planned: int | None = None
    circle: CircleArm | None = None

    def in_case(self, case: Case) -> Allowance:
        """On a record that the circle has judged."""
        if self.circle is None:
            return Allowance(self.planned or 1)
        outcome = case.earlier[self.circle.name]
        return self._matched(outcome.rounds, outcome.tokens_in + outcome.tokens_out)

    async def at_most(self, case: Case) -> Allowance:
        """On a record that the circle has yet to judge: as if it held every round it may."""
        if self.circle is None:
            return Allowance(self.planned or 1)
        calls = await self.circle.rehearse(case)
        return self._matched(max(call.round_number for call in calls), tokens_of(calls))

    def _matched(self, rounds: int, tokens: int) -> Allowance:
        assert self.circle is not None
        paid = [model for model in self.circle.config.models if not is_embedded(model)]
        return Allowance(len(paid) * max(1, rounds), tokens or None)


def tokens_of(calls: Sequence[CallRecord]) -> int:
    """Read and written, as far as it is known."""
    return sum((call.tokens_in or 0) + (call.tokens_out or 0) for call in calls)
