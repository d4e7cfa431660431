"""Open connections to hosted endpoints, shared by all voices of an event loop and closed with it.

What is learnt of an address while it is in use is kept with them: how many calls it takes at once, and which
fields it turned down. Why aiohttp speaks here is in docs/decisions/008.
"""

from __future__ import annotations

import asyncio
import os
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

KEEP_IDLE_SECONDS = 60.0
"""Rounds of slow models are half a minute apart; a connection should outlive that."""
MAX_ANSWER_BYTES = 16_000_000


class HttpAnswer(NamedTuple):
    """What an endpoint sent back."""

    status: int
    content_type: str
    retry_after: str | None
    body: bytes


class ConnectionLost(Exception):  # noqa: N818 - it tells what happened to a caller who handles it
    """The endpoint could not be reached, or hung up before its answer was whole."""


class AnswerUnreadable(Exception):  # noqa: N818 - it tells what happened to a caller who handles it
    """The endpoint answered with more than any model has to say, or in an encoding it did not keep to."""


class Connections:
    """The connections to one address."""

    def __init__(self, url: str, concurrency: Concurrency) -> None:
        self.slots = Slots(concurrency)
        self.refused_fields: dict[str, frozenset[str]] = {}
        """Per model, the request fields that this address turned down."""
        self._url = url
        self._session = open_session(url)
        self._under_way = 0
        self._closed = False

    async def post(self, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """Send the body and read the whole answer; the caller bounds the time it may take."""
        import aiohttp
        from aiohttp.http_exceptions import ContentEncodingError

        self._under_way += 1
        try:
            sending = self._session.post(self._url, data=body, headers=headers, allow_redirects=False)
            async with sending as response:
                content = await _content(response)
        except aiohttp.ClientPayloadError as broken:
            if isinstance(broken.__cause__, ContentEncodingError):
                raise AnswerUnreadable(f"its encoding is broken: {broken.__cause__}") from None
            raise ConnectionLost("the connection was closed before the answer was whole") from None
        except aiohttp.ClientError as lost:
            raise ConnectionLost(str(lost) or type(lost).__name__) from None
        finally:
            self._under_way -= 1
            await self._hang_up_if_done()
        of_answer = response.headers
        return HttpAnswer(
            response.status, of_answer.get("content-type", ""), of_answer.get("retry-after"), content
        )

    async def aclose(self) -> None:
        """Hang up; a call in progress hangs up when it is done."""
        self._closed = True
        await self._hang_up_if_done()

    async def _hang_up_if_done(self) -> None:
        if self._closed and not self._under_way:
            await self._session.close()


def open_session(url: str) -> aiohttp.ClientSession:
    """A session for one address, with no limits of its own: slots bound the calls, callers bound the time."""
    import aiohttp

    connector = aiohttp.TCPConnector(
        limit=0, keepalive_timeout=KEEP_IDLE_SECONDS, ssl=_tls() if url.startswith("https:") else False
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        # Proxies named in the environment are for the world outside, never for a server on this machine.
        trust_env=not on_this_machine(urlsplit(url).hostname or ""),
    )


@cache
def _tls() -> ssl.SSLContext:
    """The certificates that are trusted: those the environment names, else certifi's."""
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
    """The running loop's connections to this address. Whoever comes first says how many it may take."""
    loop = asyncio.get_running_loop()
    here = _open.get(loop)
    if here is None:
        by_url: dict[str, Connections] = {}
        here = _open[loop] = _OpenHere(by_url, _kept_while_the_loop_runs(by_url))
        await anext(here.keeper)
    connections = here.by_url.get(url)
    if connections is None:
        connections = here.by_url[url] = Connections(url, concurrency)
    return connections


async def _kept_while_the_loop_runs(by_url: dict[str, Connections]) -> AsyncGenerator[None, None]:
    # A loop that is shut down in order (asyncio.run does) closes its generators, and so the connections.
    try:
        yield
    finally:
        _open.pop(asyncio.get_running_loop(), None)
        for connections in by_url.values():
            await connections.aclose()


async def aclose() -> None:
    """Close the running loop's connections now. Needed only where nobody calls `shutdown_asyncgens`."""
    if here := _open.get(asyncio.get_running_loop()):
        await here.keeper.aclose()
