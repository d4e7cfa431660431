"""A cheap circle first; the dear one only where the cheap one is unsure."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.circle.result import CallRecord
from firecircle.lab.arms.arm import Case, Seating
from firecircle.lab.arms.circle import CircleArm
from firecircle.lab.records import Outcome

_SUMS = ("calls", "attempts", "tokens_in", "tokens_cached", "tokens_out", "calls_without_tokens")


FIRST, SECOND = "/first", "/second"
"""Behind the arm's name: what its circles are called."""


@dataclass(frozen=True, slots=True)
class CascadeArm:
    """`cascade`: the second circle sits when the first one's F is within the band, or when it failed."""

    name: str
    first: CircleArm
    second: CircleArm
    band: tuple[float, float]
    kind: str = "cascade"

    @property
    def models(self) -> tuple[str, ...]:
        """Everybody who may be asked."""
        return tuple(dict.fromkeys((*self.first.models, *self.second.models)))

    async def judge(self, case: Case, seating: Seating) -> Outcome:
        """The last word of whichever circle had it; the cost of both."""
        cheap = await self.first.judge(case, seating)
        low, high = self.band
        if cheap.f is not None and not low <= cheap.f <= high:
            return cheap.model_copy(update={"escalated": False})
        dear = await self.second.judge(case, seating)
        sums = {name: getattr(cheap, name) + getattr(dear, name) for name in _SUMS}
        prices = (cheap.cost_usd, dear.cost_usd)
        return dear.model_copy(
            update={
                **sums,
                "cost_usd": None if None in prices else sum(price or 0.0 for price in prices),
                "latency_seconds": cheap.latency_seconds + dear.latency_seconds,
                "escalated": True,
            }
        )

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """Both circles: how many records will need the second is not known beforehand."""
        return (*await self.first.rehearse(case), *await self.second.rehearse(case))
