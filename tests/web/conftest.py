"""A store and a server for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from firecircle.store.opening import Store, open_store
from tests.web.serving import Running, running


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(Path(tmp_path_factory.mktemp("store")) / "circles.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def server(store: Store) -> Iterator[Running]:
    with running(store) as started:
        yield started


@pytest.fixture
def client(server: Running) -> Iterator[httpx.Client]:
    with server.client() as made:
        yield made


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
