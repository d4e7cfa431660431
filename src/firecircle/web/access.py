"""Who may ask: the right host, the right origin, the right token. No framework, only the rules."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from firecircle.errors import ConfigError

SHORTEST_TOKEN = 16
WRITE_HEADER = "x-firecircle-token"
MOST_GUESSES, GUESSING_SECONDS = 10, 60.0
"""So many wrong tokens a network may offer in that time; then it must wait, even with the right one."""
MOST_GUESSERS = 10_000
READING = frozenset({"GET", "HEAD", "OPTIONS"})
Right = Literal["read", "write"]
"""What a caller may do: look at everything, or also change it."""
_NAMES_OF_LOOPBACK = frozenset({"localhost", "localhost.localdomain"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host in _NAMES_OF_LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what they may do."""

    right: Right | None
    """None for a stranger, who sees only the page that asks for a token."""
    write_token: str = ""
    """What the pages of this caller carry to change something; empty for a reader."""

    @property
    def may_write(self) -> bool:
        """Whether the caller may change something."""
        return self.right == "write"


@dataclass(slots=True)
class Guesses:
    """The wrong tokens that came lately, by the network they came from."""

    _times: OrderedDict[str, list[float]] = field(default_factory=OrderedDict)

    def add(self, client: str) -> None:
        """Count one more wrong token."""
        network = _network_of(client)
        self._times[network] = [*self._lately(network), time.monotonic()]
        self._times.move_to_end(network)
        if len(self._times) > MOST_GUESSERS:
            self._times.popitem(last=False)

    def seconds_to_wait(self, client: str) -> int:
        """How long this client must wait before another token is looked at; 0 if it need not."""
        lately = self._lately(_network_of(client))
        if len(lately) < MOST_GUESSES:
            return 0
        return int(lately[-MOST_GUESSES] + GUESSING_SECONDS - time.monotonic()) + 1

    def _lately(self, network: str) -> list[float]:
        begin = time.monotonic() - GUESSING_SECONDS
        return [at for at in self._times.get(network, ()) if at > begin]


def _network_of(client: str) -> str:
    """Who has one address of IPv6 has a whole /64 of them."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client
    return str(ipaddress.ip_network(f"{address}/64", strict=False)) if address.version == 6 else client


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one server. Without a token only loopback is served, and every caller may write."""

    host: str = "127.0.0.1"
    token: str | None = None
    """With this a caller reads and writes."""
    name: str | None = None
    """A host name under which a proxy forwards requests to this server."""
    read_token: str | None = None
    """With this a caller only reads."""
    behind_proxy: bool = False
    """Whether every request comes through a proxy, whose X-Forwarded-For and -Proto are believed."""
    guesses: Guesses = field(default_factory=Guesses)
    write_token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """New for every server. Pages carry it, so that no other site can change anything."""

    def __post_init__(self) -> None:
        if not self.needs_token and not self.only_here:
            raise ConfigError(
                "--token",
                (
                    f"{self.name or self.host} can be reached from other machines, so choose a token that"
                    f" readers must know, or leave {'--public-url' if self.name else '--host'} out"
                ),
            )
        for option, token in (("--token", self.token), ("--read-token", self.read_token)):
            if token is not None and len(token) < SHORTEST_TOKEN:
                raise ConfigError(
                    option, f"at least {SHORTEST_TOKEN} characters, so that it cannot be guessed"
                )
        if self.token is not None and self.token == self.read_token:
            raise ConfigError("--read-token", "it must differ from --token")

    @property
    def _rights(self) -> dict[str, Right]:
        """What each token allows."""
        rights: tuple[tuple[str | None, Right], ...] = ((self.token, "write"), (self.read_token, "read"))
        return {token: right for token, right in rights if token is not None}

    @property
    def needs_token(self) -> bool:
        """Whether a caller must know a token."""
        return bool(self._rights)

    @property
    def only_here(self) -> bool:
        """Whether only this computer reaches the server."""
        return is_loopback(self.host) and self.name is None

    def allows_host(self, header: str | None) -> bool:
        """Whether a Host header can be meant for us: a foreign name that points here is DNS rebinding."""
        name = _host_name(header or "")
        if name is None:
            return False
        if is_loopback(name) or name == self.name:
            return True
        if is_loopback(self.host):
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in {self.host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}
        return True  # an address is no name, so nobody can point it elsewhere

    def cookie_of(self, token: str) -> str:
        """What a browser keeps instead of the token itself."""
        return hashlib.sha256(f"firecircle cookie {self.write_token} {token}".encode()).hexdigest()

    def right_of(self, token: str | None) -> Right | None:
        """What this token allows; None when it is not one of the server's tokens."""
        return next((right for known, right in self._rights.items() if is_same(token, known)), None)

    def caller(self, headers: Mapping[str, str], cookie: str | None) -> Caller:
        """Who asks, by the token or the cookie that stands for it."""
        rights = self._rights
        right = self.right_of(bearer_in(headers)) or next(
            (allowed for token, allowed in rights.items() if is_same(cookie, self.cookie_of(token))), None
        )
        if not rights:
            right = "write"
        return Caller(right, self.write_token if right == "write" else "")

    def why_not_write(self, headers: Mapping[str, str], caller: Caller) -> str | None:
        """Why a request may not change anything; None when it may."""
        if not caller.may_write:
            return "this token only reads"
        site = headers.get("sec-fetch-site")
        if site is not None and site != "same-origin":
            return "the request comes from another site"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
            return "the request comes from another origin"
        if self.right_of(bearer_in(headers)) == "write":
            return None
        if not is_same(headers.get(WRITE_HEADER), caller.write_token):
            return f"the header {WRITE_HEADER} is missing or old; reload the page"
        return None


def bearer_in(headers: Mapping[str, str]) -> str | None:
    """The token in `Authorization: Bearer …`."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else None


def is_same(offered: str | None, known: str) -> bool:
    """Whether what is offered is what is known; how long it takes tells nothing."""
    return offered is not None and hmac.compare_digest(offered.encode(errors="replace"), known.encode())


def _host_name(header: str) -> str | None:
    try:
        parts = urlsplit(f"//{header}")
        name = parts.hostname
        _ = parts.port  # raises when it is no number
    except ValueError:
        return None
    if not name or parts.path or parts.query or parts.fragment or "@" in header:
        return None
    return name.lower()
