"""The budget of a circle in tokens and money, and what a turn may consume."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firecircle.circle.voice import Priced, Turn, Usage, Voice

if TYPE_CHECKING:
    from firecircle.circle.base_config import BaseEvaluationConfig
    from firecircle.circle.result import CallRecord


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget in tokens and money; None means no limit."""

    tokens: int | None
    money: float | None

    @classmethod
    def of(cls, config: BaseEvaluationConfig) -> Budget:
        """The budget of a configuration."""
        return cls(config.budget_tokens, config.budget_usd)

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self.tokens is not None or self.money is not None

    def shortage(self, made: Sequence[CallRecord], coming: Iterable[Usage]) -> str | None:
        """What is spent and what may be needed, if the rest is too small; otherwise None."""
        coming = tuple(coming)
        if self.tokens is not None:
            spent = sum(
                (call.tokens_in or 0) + (call.tokens_out or 0) + call.estimated_tokens
                for call in made
                if not call.cached
            )
            needed = sum((usage.tokens_in or 0) + (usage.tokens_out or 0) for usage in coming)
            if spent >= self.tokens or spent + needed > self.tokens:
                more = f" and up to {needed:,} more needed" if needed < sys.maxsize else ""
                return f"{spent:,} of {self.tokens:,} tokens are spent{more}"
        if self.money is not None:
            paid = sum((call.cost_usd or 0.0) + call.estimated_usd for call in made)
            price = sum(usage.cost_usd or 0.0 for usage in coming)
            if paid >= self.money or paid + price > self.money:
                more = f" and up to {dollars(price)} more needed" if math.isfinite(price) else ""
                return f"{dollars(paid)} of {dollars(self.money)} are spent{more}"
        return None

    def shortage_for(
        self, questions: Iterable[tuple[Voice, Turn]], made: Callable[[], Sequence[CallRecord]]
    ) -> str | None:
        """As `shortage`, for questions by each voice's estimate; without a limit, computes nothing."""
        if not self.limited:
            return None
        return self.shortage(made(), [estimate_of(voice, turn) for voice, turn in questions])


def dollars(amount: float) -> str:
    """An amount of money, with more digits for small ones."""
    return f"${amount:.4f}" if amount == 0 or amount >= 0.01 else f"${amount:.6f}"


def estimate_of(voice: Voice, turn: Turn) -> Usage:
    """The most that a voice expects a turn to consume; unknown if the voice has no estimate."""
    return voice.estimate(turn) if isinstance(voice, Priced) else Usage()
