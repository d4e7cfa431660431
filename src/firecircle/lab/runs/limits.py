"""What a run may consume: its budget over all records, and how many calls are under way at once.

Providers' own slots grow and shrink (see `voices.hosted.slots`); what is admitted here follows them. A
little more is asked than there is room for, so that no slot is empty while a circle thinks, but not much
more: a call that waits here loses time of its round.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from firecircle.circle.result import CallRecord
from firecircle.circle.voice import Usage, Voice
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


SURPLUS = 1.5
"""Calls asked for, in times of those allowed."""
MOST_RECORDS = 4
"""Records begun, in times of the calls allowed; circles that wait for one slow voice may be many."""
MOST_UNWRITTEN = 2
"""Calls under way or answered but not yet on disk, in times of the calls allowed: a slow disk must not leave
slots empty, and what a crash can lose must stay small."""
SETTLE_SECONDS = 0.002
"""A circle whose round has just ended asks again within this time."""


@dataclass(slots=True)
class _Host:
    """The provider or machine behind some of the voices: how many calls it takes now, and how many it has."""

    limit: Callable[[], float]
    pending: int = 0

    @property
    def is_full(self) -> bool:
        return self.pending >= SURPLUS * self.limit()


class CallCapacity:
    """Counts the calls to hosted and local voices of one run."""

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self._room = asyncio.Semaphore(calls)
        self._unwritten = asyncio.Semaphore(MOST_UNWRITTEN * calls)
        self._hosts: dict[str, _Host] = {}
        self._changed = asyncio.Event()
        self.pending = 0
        """Calls under way or waiting."""
        self.records = 0
        """Records begun and not yet ended."""
        self._expected = 0

    @property
    def allowed(self) -> int:
        """How many calls may be under way now."""
        given = sum(int(host.limit()) for host in self._hosts.values())
        return min(self._calls, given) if given else self._calls

    @asynccontextmanager
    async def answer(self) -> AsyncIterator[None]:
        """Held from before a call until its answer is on disk, so that few answers can ever be lost."""
        async with self._unwritten:
            yield

    @asynccontextmanager
    async def call(self, model: str, voice: Voice) -> AsyncIterator[None]:
        """Hold room for one call."""
        host = await self._host(model, voice)
        self.pending += 1
        host.pending += 1
        try:
            async with self._room:
                yield
        finally:
            self.pending -= 1
            host.pending -= 1
            self._changed.set()

    async def _host(self, model: str, voice: Voice) -> _Host:
        """Who answers for this voice: the provider behind it, or this machine."""
        provider = getattr(voice, "provider", None)
        name = provider.base_url if provider else model.partition(":")[0]
        if name not in self._hosts:
            self._hosts[name] = _Host(await _limit_of(voice, is_local=name == "local", otherwise=self._calls))
            self._changed.set()
        return self._hosts[name]

    @property
    def _most_records(self) -> int:
        """A model on this machine has read the text of one record, and would have to read it again after that
        of another."""
        return 1 if self._hosts.keys() == {"local"} else MOST_RECORDS * self.allowed

    async def wait_for_room(self) -> None:
        """Back when another record may begin. Until one has asked, nobody knows how much room there is."""
        while self.records and (
            not self._hosts
            or self.pending + self._expected >= SURPLUS * self.allowed
            or self.records >= self._most_records
            or any(host.is_full for host in self._hosts.values())
        ):
            self._changed.clear()
            await self._changed.wait()
            await asyncio.sleep(SETTLE_SECONDS)

    @asynccontextmanager
    async def record(self, expected: int) -> AsyncIterator[Admission]:
        """A record that has begun, and how many calls it will make at first."""
        admission = Admission(self, expected)
        self.records += 1
        try:
            yield admission
        finally:
            self.records -= 1
            admission.has_asked()
            self._changed.set()

    def expect(self, calls: int) -> None:
        """So many more calls are about to be made, or, if negative, were made."""
        self._expected += calls


async def _limit_of(voice: Voice, *, is_local: bool, otherwise: int) -> Callable[[], float]:
    if is_local:
        from firecircle.voices.local.llama import SLOTS

        return lambda: SLOTS
    provider = getattr(voice, "provider", None)
    if provider is None:
        return lambda: otherwise
    from firecircle.voices.hosted.connections import connections_to

    connections = await connections_to(provider.base_url, provider.concurrency)
    return lambda: connections.limit


class Admission:
    """A record's place, which stands for the calls it has yet to make."""

    def __init__(self, capacity: CallCapacity, expected: int) -> None:
        self._capacity = capacity
        self._expected = expected
        capacity.expect(expected)

    def has_asked(self) -> None:
        """The record's own calls speak for it now."""
        self._capacity.expect(-self._expected)
        self._expected = 0
