"""What a run may consume: its budget over all records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from firecircle.circle.result import CallRecord
from firecircle.circle.voice import Usage
from firecircle.errors import BudgetError, ConfigError
from firecircle.lab.plan import BudgetPlan


class RunBudget:
    """Counts what was spent, and reserves what the records under way may still take."""

    def __init__(self, budget: BudgetPlan, tokens: int, usd: float) -> None:
        self._budget = budget
        self.tokens = tokens
        self.usd = usd
        self._reserved_tokens = 0
        self._reserved_usd = 0.0
        self._under_way = 0
        self._changed = asyncio.Event()

    @property
    def limited(self) -> bool:
        """Whether there is anything to keep to."""
        return self._budget.limited

    def spend(self, usage: Usage) -> None:
        """Note what a call took."""
        self.tokens += usage.charged_tokens
        self.usd += usage.charged_usd or 0.0

    @asynccontextmanager
    async def reserve(self, calls: Sequence[CallRecord]) -> AsyncIterator[Callable[[Usage], bool]]:
        """Hold what these calls may take at most. `BudgetError` when that can no longer be had.

        Whoever needs more on the way, for a retry or a further question, asks for it with what is handed out.
        """
        tokens, usd = _most(calls, self._budget)
        while not self._fits(tokens, usd):
            if not self._under_way:
                raise BudgetError(self._shortage(tokens, usd))
            # What others reserved and did not need may be enough.
            self._changed.clear()
            await self._changed.wait()
        self._reserved_tokens += tokens
        self._reserved_usd += usd
        self._under_way += 1

        def affords(more: Usage) -> bool:
            nonlocal tokens, usd
            more_usd = more.charged_usd or 0.0
            if not self._fits(more.charged_tokens, more_usd):
                return False
            self._reserved_tokens += more.charged_tokens
            self._reserved_usd += more_usd
            tokens += more.charged_tokens
            usd += more_usd
            return True

        try:
            yield affords
        finally:
            self._reserved_tokens -= tokens
            self._reserved_usd -= usd
            self._under_way -= 1
            self._changed.set()

    def require_enough_for(self, calls: Sequence[CallRecord]) -> None:
        """Refuse to begin with less than one record may take."""
        tokens, usd = _most(calls, self._budget)
        if not self.tokens and not self.usd and not self._fits(tokens, usd):
            raise ConfigError(None, self._needed(tokens, usd), "raise it").in_table("budget")

    def _fits(self, tokens: int, usd: float) -> bool:
        most_tokens, most_usd = self._budget.tokens, self._budget.usd
        return (most_tokens is None or self.tokens + self._reserved_tokens + tokens <= most_tokens) and (
            most_usd is None or self.usd + self._reserved_usd + usd <= most_usd
        )

    def _needed(self, tokens: int, usd: float) -> str:
        if self._budget.usd is not None and self.usd + usd > self._budget.usd:
            return f"usd: {self._budget.usd:g} is less than one record may take, ${usd:.4f}"
        return f"tokens: {self._budget.tokens:,} is less than one record may take, {tokens:,}"

    def _shortage(self, tokens: int, usd: float) -> str:
        if self._budget.usd is not None and self.usd + usd > self._budget.usd:
            spent, needed = f"${self.usd:.4f} of ${self._budget.usd:.4f}", f"${usd:.4f}"
        else:
            spent, needed = f"{self.tokens:,} of {self._budget.tokens:,} tokens", f"{tokens:,}"
        return f"{spent} are spent, and the next record may take {needed}"


def _most(calls: Sequence[CallRecord], budget: BudgetPlan) -> tuple[int, float]:
    for call in calls:
        if budget.usd is not None and call.cost_usd is None:
            raise ConfigError(
                "usd",
                f"nobody knows the price of {call.model}",
                "declare it under [prices] in firecircle.toml, or limit tokens instead",
            ).in_table("budget")
    tokens = sum((call.tokens_in or 0) + (call.tokens_out or 0) for call in calls)
    return tokens, sum(call.cost_usd or 0.0 for call in calls)
