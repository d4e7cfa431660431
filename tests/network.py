"""No test reaches beyond this machine: whoever tries is stopped and named."""

from __future__ import annotations

import ipaddress
import socket
import sys
from typing import Any

LOCAL_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "")


class OutsideError(RuntimeError):
    """A test tried to reach another machine."""


def forbid_network() -> None:
    """From now on this process may connect to loopback addresses and local sockets only.

    An audit hook sees every connection of the interpreter, whichever library makes it, and cannot be
    taken away again.
    """
    sys.addaudithook(_watch)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto"):
        endpoint, address = arguments
        if endpoint.family in (socket.AF_INET, socket.AF_INET6) and not _is_local(str(address[0])):
            raise OutsideError(f"a test tried to reach {address[0]}; only loopback is allowed in tests")
    elif event == "socket.getaddrinfo":
        host = arguments[0]
        name = host.decode() if isinstance(host, bytes) else host
        if name is not None and _address(name) is None and not _is_local(name):
            raise OutsideError(f"a test tried to look up {name}; only loopback is allowed in tests")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that is written there; None for a name, which somebody would have to be asked about."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _is_local(host: str) -> bool:
    address = _address(host)
    if address is not None:
        return address.is_loopback or address.is_unspecified
    return host.lower() in LOCAL_NAMES or host == socket.gethostname()
