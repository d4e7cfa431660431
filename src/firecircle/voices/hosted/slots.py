"""How many calls a provider, or one of its models, is given at once: more while it takes them, fewer at 429.

A model's limit starts where the provider's declaration says; the provider's own is the most it declares,
until it says that a limit is for all. Every answer that comes while all slots are taken adds one, until a
call is turned away for the first time; from then on it takes a whole limit's worth of answers to add one. A
refusal takes the limit down by a third, once for all calls under way together. A wait that is asked for is
kept by all who want a slot here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firecircle.settings import Concurrency

SHRINK = 0.7


class NoSlot(Exception):  # noqa: N818 - the caller decides what it means
    """No slot can be had in time, because the provider asked for a wait."""

    def __init__(self, wait_seconds: float) -> None:
        super().__init__(f"asked for a pause of {wait_seconds:.1f} s")
        self.wait_seconds = wait_seconds


class Slots:
    """The calls under way to one provider, or to one of its models, in one event loop."""

    def __init__(self, concurrency: Concurrency, *, wide_open: bool = False) -> None:
        """`wide_open` begins with the most instead of growing up to it."""
        self.limit = float(concurrency.most if wide_open else concurrency.start)
        """How many calls may be under way; fractions add up."""
        self.in_flight = 0
        self._start, self._most = concurrency.start, concurrency.most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._resume_at = 0.0
        self._shrunk_at: float | None = None
        self._alarm: asyncio.TimerHandle | None = None

    def give_back(self) -> None:
        """A slot that was taken is free again."""
        self.in_flight -= 1
        if self._waiting:
            self._admit()

    def went_well(self) -> None:
        """A call of a held slot was answered: where every slot is in use, there may be one more."""
        if self.in_flight >= int(self.limit):
            step = 1.0 if self._shrunk_at is None else 1.0 / self.limit
            self.limit = min(self.limit + step, float(self._most))

    def turned_away(self, started: float, retry_after: float | None) -> None:
        """A call that began then was refused for being one too many."""
        now = asyncio.get_running_loop().time()
        if self._shrunk_at is None or started >= self._shrunk_at:
            # Others that were under way at the same time will be refused too: one cut is for all of them.
            self._shrunk_at = now
            # A limit that was never in use says nothing; a lone call that is refused says little.
            self.limit = max(1.0, min(self.limit, max(self.in_flight, self._start)) * SHRINK)
        if retry_after:
            self._resume_at = max(self._resume_at, now + retry_after)

    async def take(self, until: float, *, again: bool = False) -> None:
        """Have a slot, at once or when one is given back; whoever has it gives it back.

        Whoever tries `again` stands before those who have not had a turn yet. `TimeoutError` when none
        becomes free until then, `NoSlot` at once when none can.
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
        """Let in whoever may go; during a pause, come back when it is over."""
        loop = asyncio.get_running_loop()
        if self._waiting and loop.time() < self._resume_at:
            if self._alarm:
                self._alarm.cancel()
            self._alarm = loop.call_at(self._resume_at, self._admit)
            return
        while self._waiting and self.in_flight < int(self.limit):
            turn = self._waiting.popleft()
            # Whoever gave up waiting is still in the row.
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
