"""How many calls are under way at once.

Providers' own slots grow and shrink (see `voices.hosted.slots`); what is admitted here follows them. A
little more is asked than there is room for, so that no slot is empty while a circle thinks, but not much
more: a call that waits here loses time of its round.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from firecircle.circle.voice import Voice

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
