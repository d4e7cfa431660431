"""How many requests an endpoint gets at the same time."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firecircle.settings import Concurrency


SHRINK = 0.7


class NoSlot(Exception):  # noqa: N818 - the caller decides what it means
    """No slot is available in time, because the provider asked for a wait."""

    def __init__(self, wait_seconds: float) -> None:
        super().__init__(f"asked for a pause of {wait_seconds:.1f} s")
        self.wait_seconds = wait_seconds


class Slots:
    """The calls in progress to one provider, or to one of its models, in one event loop."""

    def __init__(self, concurrency: Concurrency, *, wide_open: bool = False) -> None:
        """`wide_open` starts at the maximum instead of growing up to it."""
        self.limit = float(concurrency.most if wide_open else concurrency.start)
        """How many calls may be in progress; fractions add up."""
        self.in_flight = 0
        self._start, self._most = concurrency.start, concurrency.most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._resume_at = 0.0
        self._shrunk_at: float | None = None
        self._alarm: asyncio.TimerHandle | None = None

    def give_back(self) -> None:
        """Return a slot."""
        self.in_flight -= 1
        if self._waiting:
            self._admit()

    def went_well(self) -> None:
        """Record a success: if every slot is in use, the limit may grow."""
        if self.in_flight >= int(self.limit):
            step = 1.0 if self._shrunk_at is None else 1.0 / self.limit
            self.limit = min(self.limit + step, float(self._most))

    def turned_away(self, started: float, retry_after: float | None) -> None:
        """Record that a call started at this time was refused as one too many."""
        now = asyncio.get_running_loop().time()
        if self._shrunk_at is None or started >= self._shrunk_at:
            # Calls in progress at the same time will be refused too: one cut for all of them.
            self._shrunk_at = now
            # A limit that was never in use means nothing; a refused single call means little.
            self.limit = max(1.0, min(self.limit, max(self.in_flight, self._start)) * SHRINK)
        if retry_after:
            self._resume_at = max(self._resume_at, now + retry_after)

    async def take(self, until: float, *, again: bool = False) -> None:
        """Wait for a slot; the caller returns it.

        Calls that try `again` come before those that have not had a slot yet. Raises `TimeoutError` if none
        becomes free in time, `NoSlot` at once if none can.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._resume_at > now and self._resume_at >= until:
            raise NoSlot(self._resume_at - now)
        if self._resume_at <= now < until and not self._waiting and self.in_flight < int(self.limit):
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        if again:
            self._waiting.appendleft(turn)
        else:
            self._waiting.append(turn)
        self._admit()
        try:
            async with asyncio.timeout_at(until):
                await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.in_flight -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        """Admit waiting calls; during a pause, check again when it is over."""
        loop = asyncio.get_running_loop()
        if self._waiting and loop.time() < self._resume_at:
            if self._alarm:
                self._alarm.cancel()
            self._alarm = loop.call_at(self._resume_at, self._admit)
            return
        while self._waiting and self.in_flight < int(self.limit):
            turn = self._waiting.popleft()
            # Calls that gave up are still in the queue.
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
