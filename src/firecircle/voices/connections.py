"""Open connections to hosted endpoints, shared by all voices of an event loop and closed with it.

What is learnt of an address while it is in use is kept with them: how many calls it takes at once, and which
fields it turned down.

httpx's own pool goes through all its connections at each call, some of it quadratically (encode/httpcore
pull request 1035): with a hundred calls in flight a call costs ten milliseconds of CPU. So each call
borrows a client that holds a single connection, which keeps the cost of a call flat.
"""

from __future__ import annotations

import asyncio
import logging
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from firecircle.voices.providers import on_this_machine
from firecircle.voices.slots import Slots

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator

    import httpx

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


class AnswerTooLarge(Exception):  # noqa: N818 - it tells what happened to a caller who handles it
    """The endpoint sent more than any model has to say."""


class Connections:
    """The connections to one address."""

    def __init__(self, url: str, concurrency: Concurrency) -> None:
        import httpx

        # At its most talkative the library logs the headers of answers, where an endpoint may echo a key.
        logging.getLogger("httpcore.http11").addFilter(_tells_no_headers)
        self.slots = Slots(concurrency)
        self.refused_fields: dict[str, frozenset[str]] = {}
        """Per model, the request fields that this address turned down."""
        self._url = httpx.URL(url)
        # Proxies named in the environment are for the world outside, never for a server on this machine.
        self._trust_env = not on_this_machine(self._url.host)
        self._idle: list[httpx.AsyncClient] = []
        self._closed = False

    async def post(self, headers: httpx.Headers, body: bytes) -> HttpAnswer:
        """Send the body and read the whole answer; the caller bounds the time it may take."""
        import httpx

        client = self._idle.pop() if self._idle else _client(self._trust_env)
        try:
            request = httpx.Request("POST", self._url, headers=headers, content=body)
            response = await client.send(request, stream=True)
            try:
                content = await _content(response)
            finally:
                await response.aclose()
        finally:
            if self._closed:
                await client.aclose()
            else:
                self._idle.append(client)
        told = response.headers
        return HttpAnswer(
            response.status_code, told.get("content-type", ""), told.get("retry-after"), content
        )

    async def aclose(self) -> None:
        """Hang up; a call in progress hangs up when it is done."""
        self._closed = True
        while self._idle:
            await self._idle.pop().aclose()


def _tells_no_headers(record: logging.LogRecord) -> bool:
    return "receive_response_headers.complete" not in record.getMessage()


def _client(trust_env: bool) -> httpx.AsyncClient:
    import httpx

    # No timeout of its own: it would bound every single read, where an attempt is bounded as a whole.
    limits = httpx.Limits(keepalive_expiry=KEEP_IDLE_SECONDS)
    return httpx.AsyncClient(verify=_tls(), timeout=None, limits=limits, trust_env=trust_env)


@cache
def _tls() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()


async def _content(response: httpx.Response) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise AnswerTooLarge(f"more than {MAX_ANSWER_BYTES:,} bytes")
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
