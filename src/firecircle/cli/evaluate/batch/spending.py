"""What a batch may spend: each prompt gets a part of its own, so that all together keep to the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from firecircle.circle.budget import Budget, dollars
from firecircle.circle.result import Usages
from firecircle.convene import rehearse
from firecircle.lab.datasets import Record
from firecircle.request import Configured


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens and dollars."""

    tokens: int = 0
    usd: float = 0.0

    @classmethod
    def taken(cls, account: Usages) -> Amount:
        """What a judgement took, by estimate where nobody says."""
        tokens = account.tokens_in + account.tokens_out + account.estimated_tokens
        return cls(tokens, (account.cost_usd or 0.0) + account.estimated_usd)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.tokens + other.tokens, self.usd + other.usd)


@dataclass(frozen=True, slots=True)
class BatchBudget:
    """What is granted to all prompts that the same voices judge, and what each may take at most."""

    granted: Budget
    at_most: Mapping[int, Amount]
    """By the number of the record, if each of its calls is made once."""

    @classmethod
    async def of(cls, judges: Configured, records: Sequence[Record], numbers: Sequence[int]) -> BatchBudget:
        """By what the judges say; nobody is asked."""
        granted = Budget.of(judges.config)
        at_most: dict[int, Amount] = {}
        for number in numbers if granted.limited else ():
            calls = await rehearse(records[number].prompt, judges.config)
            at_most[number] = Amount(
                sum((call.tokens_in or 0) + (call.tokens_out or 0) for call in calls),
                sum(call.cost_usd or 0.0 for call in calls),
            )
        return cls(granted, at_most)

    def fitting(self, numbers: Sequence[int], spent: Amount) -> tuple[list[int], Budget]:
        """The next prompts that surely fit into what is left, all at once, and what each of them may take.

        Parts are equal, and none is smaller than the dearest prompt needs; the rest is for further attempts.
        """
        if not self.granted.limited:
            return list(numbers), self.granted
        tokens, usd = self.granted.tokens, self.granted.money
        left_tokens = None if tokens is None else tokens - spent.tokens
        left_usd = None if usd is None else usd - spent.usd
        count = dearest_tokens = 0
        dearest_usd = 0.0
        for count, number in enumerate(numbers, start=1):
            dearest_tokens = max(dearest_tokens, self.at_most[number].tokens)
            dearest_usd = max(dearest_usd, self.at_most[number].usd)
            if (left_tokens is not None and (left_tokens <= 0 or dearest_tokens * count > left_tokens)) or (
                left_usd is not None and (left_usd <= 0 or dearest_usd * count > left_usd)
            ):
                count -= 1
                break
        if not count:
            return [], self.granted
        return list(numbers[:count]), Budget(
            None if left_tokens is None else left_tokens // count,
            None if left_usd is None else left_usd / count,
        )

    def shortage(self, number: int, spent: Amount) -> str:
        """Why the next prompt does not fit."""
        needed = self.at_most[number]
        if self.granted.money is not None:
            paid, granted, price = map(dollars, (spent.usd, self.granted.money, needed.usd))
            return f"{paid} of {granted} are spent and the next prompt may take {price}"
        used = f"{spent.tokens:,} of {self.granted.tokens:,}"
        return f"{used} tokens are spent and the next prompt may take {needed.tokens:,}"


def with_budget(judges: Configured, budget: Budget) -> Configured:
    """The same judges with as much to spend."""
    if not budget.limited:
        return judges
    update = {"budget_tokens": budget.tokens, "budget_usd": budget.money}
    return replace(judges, config=judges.config.model_copy(update=update))
