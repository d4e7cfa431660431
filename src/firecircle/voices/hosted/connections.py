"""Open connections to hosted endpoints, shared by all voices of an event loop and closed with it.

Each connection pool also learns how many calls its address takes at once, in all and per model.
docs/decisions/002-core-dependencies.md explains the choice of aiohttp.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
from collections import deque
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from firecircle.voices.hosted.providers import on_this_machine

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator

    import aiohttp

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


_log = logging.getLogger(__name__)
KEEP_IDLE_SECONDS = 60.0
"""Rounds of slow models are half a minute apart; a connection should last longer."""
MAX_ANSWER_BYTES = 16_000_000
MOST_CONNECTIONS, FILES_OF_ONES_OWN = 100_000, 32
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL)
UNKNOWN_ENCODING = re.compile(r"content-encoding: \w+ \((\w+)\)\. Please install `([^`]+)`")
"""aiohttp's message for an encoding whose package is missing."""


class HttpAnswer(NamedTuple):
    """An endpoint's response."""

    status: int
    headers: Mapping[str, str]
    """By name, case-insensitive."""
    body: bytes


class ConnectionLost(Exception):  # noqa: N818 - an outcome, handled by the caller
    """The endpoint was unreachable, or closed the connection before the answer was complete."""

    def __init__(self, message: str, *, was_reached: bool, no_room: bool = False) -> None:
        super().__init__(message)
        self.was_reached = was_reached
        """Whether the endpoint may have received the question."""
        self.no_room = no_room
        """Whether this machine has no room for another connection."""


class AnswerUnreadable(Exception):  # noqa: N818 - an outcome, handled by the caller
    """The answer is larger than any model's, or its encoding is invalid."""


class Connections:
    """The connections to one address."""

    def __init__(self, url: str, concurrency: Concurrency) -> None:
        most = min(concurrency.most, _room_for_connections())
        concurrency = concurrency.model_copy(update={"most": most, "start": min(concurrency.start, most)})
        self.slots = Slots(concurrency, wide_open=True)
        """For all calls to this address."""
        self._of_models: dict[str, Slots] = {}
        self._concurrency = concurrency
        if not on_this_machine(urlsplit(url).hostname or ""):
            _log.info("prompts go to %s", url)
        self._session = open_session(url)
        self._under_way = 0
        self._closed = False

    def slots_of(self, name: str) -> Slots:
        """For the calls to one model, whose limits need not affect the others."""
        if name not in self._of_models:
            self._of_models[name] = Slots(self._concurrency)
        return self._of_models[name]

    @property
    def limit(self) -> float:
        """How many calls may run now, summed over the models asked so far."""
        of_models = sum(slots.limit for slots in self._of_models.values())
        return min(self.slots.limit, of_models or float(self._concurrency.start))

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """Send the body and read the whole answer; the caller limits the time."""
        import aiohttp
        from aiohttp.http_exceptions import ContentEncodingError

        self._under_way += 1
        try:
            sending = self._session.post(url, data=body, headers=headers, allow_redirects=False)
            async with sending as response:
                content = await _content(response)
        except aiohttp.ClientPayloadError as broken:
            if isinstance(broken.__cause__, ContentEncodingError):
                raise AnswerUnreadable(f"its encoding is broken: {broken.__cause__}") from None
            whole = "the connection was closed before the answer was whole"
            raise ConnectionLost(whole, was_reached=True) from None
        except aiohttp.ClientError as lost:
            if unknown := UNKNOWN_ENCODING.search(str(lost)):
                encoding, package = unknown.groups()
                message = (
                    f"it came in the encoding {encoding}, though gzip was asked for; {package} would read it"
                )
                raise AnswerUnreadable(message) from None
            was_reached = not isinstance(lost, aiohttp.ClientConnectorError)
            no_room = isinstance(lost, OSError) and lost.errno in NO_ROOM
            message = str(lost) or type(lost).__name__
            raise ConnectionLost(message, was_reached=was_reached, no_room=no_room) from None
        finally:
            self._under_way -= 1
            await self._hang_up_if_done()
        return HttpAnswer(response.status, response.headers, content)

    async def aclose(self) -> None:
        """Close the connections; a call in progress closes its own when it is done."""
        self._closed = True
        await self._hang_up_if_done()

    async def _hang_up_if_done(self) -> None:
        if self._closed and not self._under_way:
            await self._session.close()


def _room_for_connections() -> int:
    """Connections per address: half of the process's file limit, without the files it needs anyway."""
    try:
        import resource
    except ImportError:  # Windows: no such limit
        return MOST_CONNECTIONS
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, (allowed - FILES_OF_ONES_OWN) // 2)


def open_session(url: str) -> aiohttp.ClientSession:
    """A session for one address, without its own limits: slots limit the calls, callers the time."""
    import aiohttp

    connector = aiohttp.TCPConnector(
        limit=0, keepalive_timeout=KEEP_IDLE_SECONDS, ssl=_tls() if url.startswith("https:") else False
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        # Proxies from the environment are for remote hosts, never for a server on this machine.
        trust_env=not on_this_machine(urlsplit(url).hostname or ""),
    )


@cache
def _tls() -> ssl.SSLContext:
    """The trusted certificates: those the environment names, otherwise certifi's."""
    import ssl

    import certifi

    return ssl.create_default_context(
        cafile=os.environ.get("SSL_CERT_FILE") or certifi.where(), capath=os.environ.get("SSL_CERT_DIR")
    )


async def _content(response: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise AnswerUnreadable(f"more than {MAX_ANSWER_BYTES:,} bytes")
    return b"".join(parts)


class _OpenHere(NamedTuple):
    by_url: dict[str, Connections]
    keeper: AsyncGenerator[None, None]


_open: WeakKeyDictionary[asyncio.AbstractEventLoop, _OpenHere] = WeakKeyDictionary()


async def connections_to(url: str, concurrency: Concurrency) -> Connections:
    """The running loop's connections to this address. The first caller sets the concurrency."""
    loop = asyncio.get_running_loop()
    here = _open.get(loop)
    if here is None:
        by_url: dict[str, Connections] = {}
        here = _open[loop] = _OpenHere(by_url, _close_with_loop(by_url))
        await anext(here.keeper)
    connections = here.by_url.get(url)
    if connections is None:
        connections = here.by_url[url] = Connections(url, concurrency)
    return connections


async def _close_with_loop(by_url: dict[str, Connections]) -> AsyncGenerator[None, None]:
    # An orderly shutdown of the loop (asyncio.run) closes its generators, and so the connections.
    try:
        yield
    finally:
        _open.pop(asyncio.get_running_loop(), None)
        for connections in by_url.values():
            await connections.aclose()


async def aclose() -> None:
    """Close the running loop's connections now. Needed only if `shutdown_asyncgens` is not called."""
    if here := _open.get(asyncio.get_running_loop()):
        await here.keeper.aclose()
