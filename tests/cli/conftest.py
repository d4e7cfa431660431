"""The command line as a user runs it: in this process where that is enough, else as one of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from firecircle.cli.main import run
from tests.cli.running import Ran, endpoint
from tests.loopback import LoopbackServer, Script


@pytest.fixture(autouse=True)
def _no_key_and_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENROUTER_API_KEY", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command line in this process."""

    def ran(*arguments: str) -> Ran:
        status = run(arguments)
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return ran


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Script], LoopbackServer]]:
    """Let an endpoint with this script answer for the default provider."""
    with ExitStack() as opened:

        def host(script: Script) -> LoopbackServer:
            server = opened.enter_context(endpoint(script))
            monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test-key")
            monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
            return server

        yield host


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
