"""Who may ask: the right host, the right origin, the right token or account. No framework, only the rules."""

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
from firecircle.names import ROLES, Role

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
class Caller:
    """Who asks, and what they may do."""

    name: str | None = None
    """Of the account; None where the server knows no accounts."""
    role: Role | None = "admin"
    """None: a stranger, who may see the page to log in."""
    write_token: str = ""
    """What the pages of this caller carry to change something."""
    session: str | None = None
    """The secret of the session that a browser brought."""

    def may(self, role: Role) -> bool:
        """Whether the caller's role includes this one."""
        return self.role is not None and ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one server. `token` is what the user chose; without one only loopback is served."""

    host: str = "127.0.0.1"
    token: str | None = None
    accounts: bool = False
    """Whether readers log in with an account of the store, instead of a token that all share."""
    name: str | None = None
    """A host name under which a proxy hands requests on to this server."""
    write_token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Made afresh for every server; pages carry it, so that no other site can change anything."""

    def __post_init__(self) -> None:
        if self.accounts and self.token is not None:
            raise ConfigError("--token", "readers of this store log in with their accounts", "leave it out")
        if self.token is None and not self.accounts and not (is_loopback(self.host) and self.name is None):
            raise ConfigError(
                "--token",
                (
                    f"{self.name or self.host} can be reached from other machines, so choose a token that"
                    " readers must know, add accounts (`firecircle accounts add`), or leave"
                    f" {'--public-url' if self.name else '--host'} out"
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
        if is_loopback(name) or name == self.name:
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
        return self.token is not None and is_same(offered, self.token)

    def admits(self, authorization: str | None, cookie: str | None) -> bool:
        """Whether a request may read: always on loopback without a token, else with token or cookie."""
        if self.token is None:
            return True
        return self.knows(_bearer(authorization)) or is_same(cookie, self.cookie)

    def caller_in(self, account: str, role: Role, session: str) -> Caller:
        """The caller whose browser brought this session: its pages carry a token of this session alone."""
        token = hmac.new(self.write_token.encode(), session.encode(), hashlib.sha256).hexdigest()
        return Caller(account, role, token, session)

    def may_write(self, headers: Mapping[str, str], caller: Caller) -> str | None:
        """Why a request may change nothing here; None when it may."""
        site = headers.get("sec-fetch-site")
        if site is not None and site != "same-origin":
            return "the request comes from another site"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
            return "the request comes from another origin"
        is_program = caller.name is not None and caller.session is None
        if is_program or self.knows(bearer_in(headers)):
            return None
        if not is_same(headers.get(WRITE_HEADER), caller.write_token):
            return f"the header {WRITE_HEADER} is missing or old; reload the page"
        return None


def bearer_in(headers: Mapping[str, str]) -> str | None:
    """The token in `Authorization: Bearer …`."""
    return _bearer(headers.get("authorization"))


def _bearer(header: str | None) -> str | None:
    kind, _, value = (header or "").partition(" ")
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
