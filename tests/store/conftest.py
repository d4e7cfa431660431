"""Every test of the store runs on a SQLite file and on a real PostgreSQL server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from firecircle.store.opening import Store, open_store
from tests.store.postgres import new_schema, running_server

_number = itertools.count(1)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The address of a server, started once for all tests."""
    with running_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store may be made: nothing is there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "kept" / "circles.sqlite")
    return new_schema(request.getfixturevalue("postgresql_server"), f"test_{next(_number)}")


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    """An empty store."""
    with open_store(place) as opened:
        yield opened
