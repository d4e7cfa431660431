"""A run that dies or finds no room, then the same command again."""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.cli.running import endpoint
from tests.lab.hosting import opinion
from tests.lab.killing import JUDGEMENTS, PLAN, figures, finish, journaled
from tests.lab.killing import start as start_run
from tests.loopback import LoopbackServer


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    started: list[subprocess.Popen[bytes]] = []

    def begin(
        server: LoopbackServer, out: Path, before: Callable[[], None] | None = None
    ) -> subprocess.Popen[bytes]:
        started.append(start_run(plan, out, server, before))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_workers_leave_with_a_killed_parent(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    with endpoint(lambda request: opinion(request, latency=0.2)) as server:
        process = start(server, tmp_path / "run")
        workers: list[psutil.Process] = []
        until = time.monotonic() + 30
        while not workers and time.monotonic() < until:
            workers = psutil.Process(process.pid).children()
            time.sleep(0.02)
        assert workers
        process.kill()
        _, alive = psutil.wait_procs(workers, timeout=20)
        assert not alive


def test_a_full_disk_stops_the_run_with_a_word_and_loses_nothing(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (80_000, 80_000))

    with endpoint(opinion) as server:
        process = start(server, tmp_path / "run", small_disk)
        _, told = process.communicate(timeout=120)
        assert process.returncode == 2
        assert b"the journal cannot be written" in told
        assert b"Traceback" not in told
        before, asked_before = journaled(tmp_path / "run"), len(server.requests)
        assert before > 0
        finish(start(server, tmp_path / "run"))
        assert len(server.requests) - asked_before == journaled(tmp_path / "run") - before
    assert len(figures(tmp_path / "run")) == JUDGEMENTS
