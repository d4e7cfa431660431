"""What all prompts together may take: calls and prompts at once, tokens and money."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from firecircle.circle.result import CallRecord
from firecircle.circle.voice import Usage, Voice
from firecircle.errors import BudgetError, ConfigError


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be under way at once, and how much may be spent; None is no limit."""

    calls: int
    """Calls to hosted and local voices under way; a provider's own limit may be lower."""
    at_once: int | None = None
    """Prompts under way; if None, as many as there is room for calls."""
    tokens: int | None = None
    usd: float | None = None

    @property
    def is_budget(self) -> bool:
        """Whether there is a budget to keep to."""
        return self.usd is not None or self.tokens is not None


class SharedBudget:
    """Counts what was spent, and reserves what the prompts under way may still take."""

    def __init__(self, limits: Limits, tokens: int, usd: float) -> None:
        self._limits = limits
        self.tokens = tokens
        self.usd = usd
        self._reserved_tokens = 0
        self._reserved_usd = 0.0
        self.under_way = 0
        """Prompts that hold a reservation."""
        self._waiting = 0
        self._changed = asyncio.Event()

    @property
    def is_limited(self) -> bool:
        """Whether there is anything to keep to."""
        return self._limits.is_budget

    def spend(self, usage: Usage) -> None:
        """Note what a call took."""
        self.tokens += usage.charged_tokens
        self.usd += usage.charged_usd or 0.0

    @asynccontextmanager
    async def reserve(self, calls: Sequence[CallRecord]) -> AsyncIterator[Reservation]:
        """Hold what these calls may take at most. `BudgetError` when that can no longer be had."""
        tokens, usd = self._most(calls)
        # What others reserved and did not need may be enough.
        await self._wait_for_room(tokens, usd, lambda: not self.under_way)
        reservation = Reservation(self, tokens, usd)
        self.under_way += 1
        try:
            yield reservation
        finally:
            self._reserved_tokens -= reservation.tokens
            self._reserved_usd -= reservation.usd
            self.under_way -= 1
            self._changed.set()

    async def wait_for_more(self, tokens: int, usd: float) -> None:
        """Hold so much more for a prompt under way; `BudgetError` when all of them wait for that."""
        self._waiting += 1
        try:
            await self._wait_for_room(tokens, usd, lambda: self._waiting >= self.under_way)
        finally:
            self._waiting -= 1

    async def _wait_for_room(self, tokens: int, usd: float, is_in_vain: Callable[[], bool]) -> None:
        while not self.take(tokens, usd):
            if is_in_vain():
                raise BudgetError(self._shortage(tokens, usd))
            self._changed.clear()
            await self._changed.wait()

    def take(self, tokens: int, usd: float) -> bool:
        """Hold so much if there is room for it."""
        fits = self._fits(tokens, usd)
        if fits:
            self._reserved_tokens += tokens
            self._reserved_usd += usd
        return fits

    def require_enough_for(self, calls: Sequence[CallRecord]) -> None:
        """Refuse to begin with less than one prompt may take."""
        try:
            tokens, usd = self._most(calls)
        except ConfigError as unpriced:
            raise unpriced.renamed("usd").in_table("budget") from None
        if not self.tokens and not self.usd and not self._fits(tokens, usd):
            raise ConfigError(None, self._needed(tokens, usd), "raise it").in_table("budget")

    def _fits(self, tokens: int, usd: float) -> bool:
        most_tokens, most_usd = self._limits.tokens, self._limits.usd
        return (most_tokens is None or self.tokens + self._reserved_tokens + tokens <= most_tokens) and (
            most_usd is None or self.usd + self._reserved_usd + usd <= most_usd
        )

    def _needed(self, tokens: int, usd: float) -> str:
        if self._limits.usd is not None and self.usd + usd > self._limits.usd:
            return f"usd: {self._limits.usd:g} is less than one record may take, ${usd:.4f}"
        return f"tokens: {self._limits.tokens:,} is less than one record may take, {tokens:,}"

    def _shortage(self, tokens: int, usd: float) -> str:
        most = self._limits.usd
        if most is not None and (self._limits.tokens is None or self.usd + self._reserved_usd + usd > most):
            spent, needed = f"${self.usd:.4f} of ${most:.4f}", f"${usd:.4f}"
        else:
            spent, needed = f"{self.tokens:,} of {self._limits.tokens:,} tokens", f"{tokens:,}"
        return f"{spent} are spent and the next prompt may take {needed}"

    def _most(self, calls: Sequence[CallRecord]) -> tuple[int, float]:
        for call in calls:
            if self._limits.usd is not None and call.cost_usd is None:
                raise ConfigError(
                    "budget_usd",
                    f"no price is known for {call.model}",
                    "declare it under [prices] in firecircle.toml, or limit tokens instead",
                )
        tokens = sum((call.tokens_in or 0) + (call.tokens_out or 0) for call in calls)
        return tokens, sum(call.cost_usd or 0.0 for call in calls)


class Reservation:
    """What one prompt may still take."""

    def __init__(self, budget: SharedBudget, tokens: int, usd: float) -> None:
        self._budget = budget
        self.tokens, self.usd = tokens, usd

    def affords(self, more: Usage) -> bool:
        """Hold more, for a retry or a further question; False where there is no room."""
        usd = more.charged_usd or 0.0
        if not self._budget.take(more.charged_tokens, usd):
            return False
        self.tokens += more.charged_tokens
        self.usd += usd
        return True

    async def replace(self, lost: Sequence[Usage]) -> None:
        """Hold once more what calls took that have to be made again; `BudgetError` if that is too much."""
        tokens = sum(usage.charged_tokens for usage in lost)
        usd = sum(usage.charged_usd or 0.0 for usage in lost)
        if self._budget.is_limited and (tokens or usd):
            await self._budget.wait_for_more(tokens, usd)
            self.tokens += tokens
            self.usd += usd


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
    """Counts the calls to hosted and local voices that are made for many prompts."""

    def __init__(self, calls: int, at_once: int | None = None, *, is_free: bool = False) -> None:
        """`at_once` is how many records may be begun, if that was said; free ones wait for nothing else."""
        self._calls = calls
        self._at_once = at_once
        self._is_free = is_free
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
        while self.records and self._is_full:
            self._changed.clear()
            await self._changed.wait()
            await asyncio.sleep(0 if self._is_free else SETTLE_SECONDS)

    @property
    def _is_full(self) -> bool:
        if self._is_free:
            return self.records >= (self._at_once or self._calls)
        return (
            not self._hosts
            or self.pending + self._expected >= SURPLUS * self.allowed
            or self.records >= min(self._most_records, self._at_once or self._most_records)
            or any(host.is_full for host in self._hosts.values())
        )

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
