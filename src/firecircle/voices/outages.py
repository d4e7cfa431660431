"""Providers that are out: whoever judges many prompts waits until they answer, instead of losing the prompts.

A host is out when calls fail there for a reason that passes (a refused connection, a server's fault that all
of its models have) and nobody was answered since they began; a model is out while it is limited. After a
pause one prompt is tried; if its calls fail as well, the next pause is twice as long. The tries of a single
call within its round are the voice's own affair.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from firecircle.errors import FailureKind, FireCircleError
from firecircle.settings import WaitingTable

TRIES = 3
"""How often a prompt is judged whose voices are lost to the network or a limit although providers answer."""


class StillOut(FireCircleError):  # noqa: N818 - it tells what is so
    """A host has not answered for as long as anybody is willing to wait."""


@dataclass(frozen=True, slots=True)
class Lost:
    """How a call failed."""

    kind: FailureKind
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Nobody is asked until then."""

    host: str
    why: str
    resumes_at: float
    """When somebody tries again, as `time.time` counts."""


@dataclass(slots=True)
class _Outage:
    """One host that is out, in seconds of the monotonic clock."""

    why: str
    since: float
    wait: float
    until: float


class Outages:
    """Which hosts are out. Hosted voices tell it within `noticed`, in the tasks that are begun there."""

    def __init__(self, waiting: WaitingTable, changed: Callable[[Pause | None], None]) -> None:
        """`changed` is told of every pause, and with None when it is over."""
        self._waiting = waiting
        self._tell = changed
        self._out: dict[str, _Outage] = {}
        self._answered: dict[str, float] = {}
        """When each host last answered anybody."""
        self._answers: dict[str, dict[str, bool]] = {}
        """For each model of a host, whether it answered last time."""
        self._lost: set[str] = set()
        self._is_tried = False
        self._news = asyncio.Event()

    @property
    def pause(self) -> Pause | None:
        """The pause there is now; of several the longest."""
        if not self._out:
            return None
        host, outage = max(self._out.items(), key=lambda item: item[1].until)
        return Pause(host, outage.why, time.time() + outage.until - time.monotonic())

    @contextmanager
    def noticed(self) -> Iterator[None]:
        """While hosted voices tell how their calls end."""
        token = _listening.set(self)
        try:
            yield
        finally:
            _listening.reset(token)

    def has_lost(self, model: str) -> bool:
        """Whether a call to this model failed for a reason that passes."""
        return model in self._lost

    def answered(self, host: str, model: str) -> None:
        """A call was answered: host and model are there."""
        self._answered[host] = time.monotonic()
        self._answers.setdefault(host, {})[model] = True
        were_out = [name for name in (host, model) if self._out.pop(name, None)]
        if were_out:
            self._changed()

    def lost(self, host: str, model: str, failure: Lost, *, began: float) -> None:
        """A call that began then (`time.monotonic`) failed for a reason that passes.

        A limit is the model's. A connection that fails is the host's, and so is a fault that all of its
        models have; one that others do not have is left to whoever asks that model.
        """
        models = self._answers.setdefault(host, {})
        models[model] = False
        self._lost.add(model)
        if failure.kind == "rate_limited":
            self._pause(model, failure.message, began, failure.retry_after)
        elif self._answered.get(host, -1.0) < began and (
            failure.kind == "connection" or not any(models.values())
        ):
            self._pause(host, failure.message, began, failure.retry_after)

    def _pause(self, host: str, why: str, began: float, retry_after: float | None) -> None:
        now = time.monotonic()
        outage = self._out.get(host)
        since = outage.since if outage else now
        if retry_after and now + retry_after - since > self._waiting.patience_seconds:
            # Nobody would wait so long, and it may be a mistake: ask again after the longest pause.
            retry_after = self._waiting.longest_seconds
        if outage is None:
            wait = retry_after or self._waiting.first_seconds
            self._out[host] = _Outage(why, now, wait, now + wait)
        elif began >= outage.until:  # it was the one that tried
            outage.wait = min(2 * outage.wait, self._waiting.longest_seconds)
            outage.until, outage.why = now + (retry_after or outage.wait), why
        elif retry_after and now + retry_after > outage.until:  # it was under way, and knows more
            outage.until, outage.why = now + retry_after, why
        else:
            return
        self._changed()

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[None]:
        """Held while one prompt is judged. Waits for the end of a pause, after which one goes first.

        `StillOut` when that takes longer than the user is willing to wait.
        """
        goes_first = await self._wait()
        try:
            yield
        finally:
            if goes_first:
                self._is_tried = False
                self._wake()

    async def _wait(self) -> bool:
        while self._out:
            host, outage = max(self._out.items(), key=lambda item: item[1].until)
            if outage.until - outage.since > self._waiting.patience_seconds:
                seconds = time.monotonic() - outage.since
                raise StillOut(f"{host} is still out after {seconds:.0f} s: {outage.why}")
            left = outage.until - time.monotonic()
            if left <= 0 and not self._is_tried:
                self._is_tried = True
                return True
            with suppress(TimeoutError):
                async with asyncio.timeout(left if left > 0 else None):
                    await self._news.wait()
        return False

    def _changed(self) -> None:
        self._tell(self.pause)
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


_listening: ContextVar[Outages | None] = ContextVar("outages", default=None)


def current_outages() -> Outages | None:
    """Who wants to know here how calls end."""
    return _listening.get()
