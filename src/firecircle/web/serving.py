"""Starting the server: an address that is really free, one line that says where, and a browser."""

from __future__ import annotations

import errno
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import closing
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

import uvicorn

from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.web.app import Site

ANY_ADDRESS = frozenset({"0.0.0.0", "::", ""})
SECONDS_TO_LEAVE = 3


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket bound to the address; port 0 takes any that is free."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as unknown:
        raise ConfigError("--host", f"{host} cannot be found: {unknown.strerror or unknown}") from None
    # Named as TCP, else asyncio leaves Nagle's algorithm on and every small page waits 40 ms for nothing.
    bound = socket.socket(family, kind, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
        bound.listen(512)
    except OSError as refused:
        bound.close()
        if refused.errno == errno.EADDRINUSE:
            raise ConfigError(
                "--port", f"{port} is taken", "give another, or 0 for any that is free"
            ) from None
        raise ConfigError(
            "--port", f"cannot listen on {host}:{port}: {refused.strerror or refused}"
        ) from None
    return bound


class Tls(NamedTuple):
    """The files of a certificate, with its chain, and of its private key."""

    certificate: str
    key: str


def address_of(bound: socket.socket, host: str, *, is_encrypted: bool = False) -> str:
    """Where a browser on this machine finds the server."""
    port = bound.getsockname()[1]
    name = "127.0.0.1" if host in ANY_ADDRESS else f"[{host}]" if ":" in host else host
    return f"{'https' if is_encrypted else 'http'}://{name}:{port}"


def serve(site: Site, bound: socket.socket, on_ready: Callable[[], None], tls: Tls | None = None) -> None:
    """Answer until the process is asked to end; `on_ready` is called when the first request can come."""
    with closing(bound):
        server_of(site, on_ready, tls).run(sockets=[bound])


def server_of(site: Site, on_ready: Callable[[], None], tls: Tls | None = None) -> uvicorn.Server:
    """The server, not started yet; setting `should_exit` ends it."""
    config = uvicorn.Config(
        site.app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the gate reads them, where the server was told that a proxy writes them
        timeout_graceful_shutdown=SECONDS_TO_LEAVE,
        ws="none",
        lifespan="on",
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
    )
    if tls:
        try:
            config.load()
        except OSError as unreadable:
            why = unreadable.strerror or str(unreadable)
            raise ConfigError("--certificate", f"cannot be used with --key: {why}") from None
    return _Server(config, site.leave, on_ready)


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, leave: Callable[[], None], on_ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._leave, self._on_ready = leave, on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Ending takes SECONDS_TO_LEAVE at most; uvicorn's forced end at a second Ctrl-C prints a traceback.
        if not self.should_exit:
            super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._leave()
        await super().shutdown(sockets)


def open_browser(address: str) -> None:
    """Show the address in the user's browser, without waiting for it."""
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
