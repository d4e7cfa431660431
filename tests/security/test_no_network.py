"""The switch that keeps tests on this machine."""

from __future__ import annotations

import asyncio
import socket
from urllib.request import urlopen

import pytest

from tests.network import OutsideError

DOCUMENTATION = "192.0.2.1"
"""An address that nobody has."""


def test_another_machine_cannot_be_reached() -> None:
    with socket.socket() as stream, pytest.raises(OutsideError, match=DOCUMENTATION.replace(".", r"\.")):
        stream.connect((DOCUMENTATION, 80))
    with pytest.raises(OutsideError, match="look up example"):
        urlopen("http://example.com", timeout=1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, pytest.raises(OutsideError):
        datagrams.sendto(b"hello", (DOCUMENTATION, 53))


async def test_nor_from_an_event_loop() -> None:
    with pytest.raises(OutsideError):
        await asyncio.open_connection(DOCUMENTATION, 80)


def test_this_machine_can() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=1).close()
