"""Outages of providers: batches and runs wait until a provider answers instead of losing prompts.

A host is out if calls to it fail for a temporary reason (a refused connection, a server fault of all its
models) and no call has succeeded since; a model is out while it is limited. After a pause one prompt is
tried; if its calls fail too, the next pause is twice as long. Retries of a single call within its round
belong to the voice.
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
"""How often a prompt is judged if the network or a limit loses its voices although providers answer."""


class StillOut(FireCircleError):  # noqa: N818 - it tells what is so
    """A host has not answered within the longest accepted wait."""


@dataclass(frozen=True, slots=True)
class Lost:
    """How a call failed."""

    kind: FailureKind
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of all calls."""

    host: str
    why: str
    resumes_at: float
    """The time of the next try, as `time.time` counts."""


@dataclass(slots=True)
class _Outage:
    """One host that is out, in seconds of the monotonic clock."""

    why: str
    since: float
    wait: float
    until: float


class Outages:
    """The hosts that are out. Hosted voices report to it within `noticed`, in the tasks started there."""

    def __init__(self, waiting: WaitingTable, changed: Callable[[Pause | None], None]) -> None:
        """`changed` receives every pause, and None when it is over."""
        self._waiting = waiting
        self._tell = changed
        self._out: dict[str, _Outage] = {}
        self._answered: dict[str, float] = {}
        """When each host last answered any call."""
        self._answers: dict[str, dict[str, bool]] = {}
        """For each model of a host, whether its last call was answered."""
        self._lost: set[str] = set()
        self._is_tried = False
        self._news = asyncio.Event()

    @property
    def pause(self) -> Pause | None:
        """The present pause; of several the longest."""
        if not self._out:
            return None
        host, outage = max(self._out.items(), key=lambda item: item[1].until)
        return Pause(host, outage.why, time.time() + outage.until - time.monotonic())

    @contextmanager
    def noticed(self) -> Iterator[None]:
        """Collect how the calls of hosted voices end."""
        token = _listening.set(self)
        try:
            yield
        finally:
            _listening.reset(token)

    def has_lost(self, model: str) -> bool:
        """Whether a call to this model failed for a temporary reason."""
        return model in self._lost

    def answered(self, host: str, model: str) -> None:
        """Record an answered call: host and model are available."""
        self._answered[host] = time.monotonic()
        self._answers.setdefault(host, {})[model] = True
        were_out = [name for name in (host, model) if self._out.pop(name, None)]
        if were_out:
            self._changed()

    def lost(self, host: str, model: str, failure: Lost, *, began: float) -> None:
        """Record that a call started at this `time.monotonic` failed for a temporary reason.

        A limit belongs to the model. A failed connection belongs to the host, and so does a fault of all its
        models; a fault of one model affects only its callers.
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
            # A longer wait may be a mistake: try again after the longest pause.
            retry_after = self._waiting.longest_seconds
        if outage is None:
            wait = retry_after or self._waiting.first_seconds
            self._out[host] = _Outage(why, now, wait, now + wait)
        elif began >= outage.until:  # this call was the try
            outage.wait = min(2 * outage.wait, self._waiting.longest_seconds)
            outage.until, outage.why = now + (retry_after or outage.wait), why
        elif retry_after and now + retry_after > outage.until:  # this call was in progress, and knows more
            outage.until, outage.why = now + retry_after, why
        else:
            return
        self._changed()

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[None]:
        """Enter while one prompt is judged. Waits for the end of a pause, after which one prompt goes first.

        Raises `StillOut` if that takes longer than the user accepts.
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
    """The collector of call outcomes in this context, if any."""
    return _listening.get()
