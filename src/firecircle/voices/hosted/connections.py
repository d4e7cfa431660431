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
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from firecircle.voices.hosted.providers import on_this_machine
from firecircle.voices.hosted.slots import Slots

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator

    import aiohttp

    from firecircle.settings import Concurrency

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
