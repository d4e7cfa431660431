"""Who may ask: the right host, the right origin, the right token. No framework in here, only the rules."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from firecircle.errors import ConfigError

SHORTEST_TOKEN = 16
WRITE_HEADER = "x-firecircle-token"
READING = frozenset({"GET", "HEAD", "OPTIONS"})
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
class Access:
    """The rules of one server. `token` is what the user chose; without one only loopback is served."""

    host: str = "127.0.0.1"
    token: str | None = None
    write_token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Made afresh for every server; pages carry it, so that no other site can change anything."""

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise ConfigError(
                "--token",
                (
                    f"{self.host} can be reached from other machines, so choose a token that readers must"
                    " know, or leave --host out"
                ),
            )
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise ConfigError(
                "--token", f"at least {SHORTEST_TOKEN} characters, so that it cannot be guessed"
            )

    def allows_host(self, header: str | None) -> bool:
        """Whether a Host header can be meant for us: a foreign name that points here is DNS rebinding."""
        name = _host_name(header or "")
        if name is None:
            return False
        if is_loopback(name):
            return True
        if is_loopback(self.host):
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in {self.host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}
        return True  # an address is no name, so nobody can point it elsewhere

    @property
    def cookie(self) -> str:
        """What a browser keeps instead of the token itself."""
        return hashlib.sha256(f"firecircle cookie {self.write_token} {self.token}".encode()).hexdigest()

    def knows(self, offered: str | None) -> bool:
        """Whether this is the token."""
        return self.token is not None and _same(offered, self.token)

    def admits(self, authorization: str | None, cookie: str | None) -> bool:
        """Whether a request may read: always on loopback without a token, else with token or cookie."""
        if self.token is None:
            return True
        return self.knows(_bearer(authorization)) or _same(cookie, self.cookie)

    def may_write(self, headers: Mapping[str, str]) -> str | None:
        """Why a request may change nothing here; None when it may."""
        site = headers.get("sec-fetch-site")
        if site is not None and site != "same-origin":
            return "the request comes from another site"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
            return "the request comes from another origin"
        if self.knows(_bearer(headers.get("authorization"))):
            return None
        if not _same(headers.get(WRITE_HEADER), self.write_token):
            return f"the header {WRITE_HEADER} is missing or old; reload the page"
        return None


def _bearer(header: str | None) -> str | None:
    kind, _, value = (header or "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else None


def _same(offered: str | None, known: str) -> bool:
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
