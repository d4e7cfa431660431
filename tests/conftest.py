"""No test reads the settings, the cache or the store of whoever runs it, or knows what another learnt."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from firecircle.settings import FILE_VARIABLE
from firecircle.store.place import STORE_VARIABLE
from firecircle.voices.hosted.chat import forget_quirks
from tests.network import forbid_network

pytest_plugins = ["pytester"]
forbid_network()

# A busy machine is no failure: how long an example takes belongs into `bench`.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


# What collecting makes lives until the end, so nobody need look for what can be thrown away.
gc.disable()


def pytest_collection_finish() -> None:
    """Leave out from now on what was there before the first test whenever garbage is looked for."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--long` lets tests that have a longer variant run that one."""
    parser.addoption("--long", action="store_true", help="run the long variant of tests that have one")


@pytest.fixture
def is_long(pytestconfig: pytest.Config) -> bool:
    """Whether the long variant of a test was asked for."""
    return bool(pytestconfig.getoption("--long"))


def pytest_unconfigure() -> None:
    """Some libraries complain of what is left when the process ends."""
    gc.unfreeze()


LONGEST = (
    "e2e/test_viewer.py",
    "e2e/test_local_model.py",
    "lab/test_cluster.py",
    "e2e/test_real_mind.py",
    "docs/test_pages.py",
    "formal/test_protocol.py",
    "security/test_cloned_folder.py",
    "lab/scan/test_scan.py",
    "lab/test_live.py",
    "cli/test_lab.py",
    "chaos/test_kills.py",
    "cli/test_live_view.py",
    "web/test_schema.py",
)
"""What takes longest, the longest first: by processor time, and a minute of it for one single test."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest tests first, or one process is still at them when the others have nothing left to do.

    Every process of a parallel run begins with an equal part of the tests in their order, and takes from the
    end of another's part when it is through with its own. So the longest begin all parts.
    """
    places = {config.rootpath / "tests" / name: place for place, name in enumerate(LONGEST)}
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    first: list[list[pytest.Item]] = [[] for _ in range(processes)]
    others = []
    for item in sorted(items, key=lambda item: places.get(item.path, len(LONGEST))):
        if item.path in places:
            first[places[item.path] % processes].append(item)
        else:
            others.append(item)
    parts: list[pytest.Item] = []
    for number, longest in enumerate(first):
        part = (len(items) - len(parts)) // (processes - number)
        room = max(part - len(longest), 0)
        parts += longest + others[:room]
        del others[:room]
    items[:] = parts + others


@pytest.fixture(autouse=True)
def _nothing_of_the_user_s_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FILE_VARIABLE, "")
    monkeypatch.delenv(STORE_VARIABLE, raising=False)
    for variable in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(variable)  # who judges by default goes by the keys that are set
    monkeypatch.delenv("SLIPCOVER_ENABLED", raising=False)  # or a pytest of a test's own counts too
    forget_quirks()
    for kind in ("cache", "data"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path.parent / f"{tmp_path.name}-{kind}"))


@pytest.fixture
def settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Write a `firecircle.toml` and name it, as a user who trusts it does."""

    def write(text: str) -> Path:
        number = sum(1 for _ in tmp_path.parent.glob(f"{tmp_path.name}-*.toml"))
        path = tmp_path.parent / f"{tmp_path.name}-{number}.toml"
        path.write_text(text, encoding="utf-8")
        monkeypatch.setenv(FILE_VARIABLE, str(path))
        return path

    return write


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """Let processes started here hear Ctrl-C: a script in the background hands down that SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
