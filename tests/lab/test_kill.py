"""kill -9 at any moment, then the same command again."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pytest

from tests.cli.running import command, endpoint
from tests.lab.hosting import TRIO, opinion
from tests.loopback import LoopbackServer

PLAN = f"""
name = "kill"
seeds = [1, 2]
[concurrency]
calls = 6
workers = 1
[[datasets]]
path = "examples"
sample = 4
[circle]
models = {list(TRIO)}
[[arms]]
name = "circle"
kind = "fire_circle"
[[arms]]
name = "reflect"
kind = "reflect"
[[arms]]
name = "single"
kind = "single"
[[arms]]
name = "consistency"
kind = "consistency"
[[arms]]
name = "court"
kind = "court"
[[arms]]
name = "council"
kind = "council"
[[arms]]
name = "free"
kind = "fire_circle"
models = ["embedded:time", "embedded:layers", "embedded:hidden", "embedded:ngrams"]
"""
ARMS = PLAN.count("[[arms]]")
CALLS_AT_ONCE = 6
KILLS = 5


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture
def start(plan: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(
        server: LoopbackServer, out: Path, before: Callable[[], None] | None = None
    ) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "OPENROUTER_API_KEY": "sk-test",
            "FIRECIRCLE_OPENROUTER_BASE_URL": server.base_url,
        }
        arguments = command("lab", "run", str(plan), "--out", str(out), "--json")
        process = subprocess.Popen(
            arguments,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=before,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_run_killed_at_random_points_ends_as_if_it_never_was(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    with endpoint(lambda request: opinion(request, latency=0.01)) as server:
        finish(start(server, tmp_path / "calm"))
        calm_calls = len(server.requests)
        assert calm_calls == journaled(tmp_path / "calm") > 50

        chance = random.Random(20)
        out = tmp_path / "storm"
        for _ in range(KILLS):
            before, asked_before = journaled(out), len(server.requests)
            process = start(server, out)
            wait_until_asked(server, asked_before + chance.randrange(0, calm_calls // KILLS), process)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            time.sleep(0.05)  # what the server was about to answer
            lost = (len(server.requests) - asked_before) - (journaled(out) - before)
            assert 0 <= lost <= 2 * CALLS_AT_ONCE

        before, asked_before = journaled(out), len(server.requests)
        finish(start(server, out))
        assert len(server.requests) - asked_before == journaled(out) - before
        assert journaled(out) == calm_calls

    assert figures(out) == figures(tmp_path / "calm")
    assert len(figures(out)) == ARMS * 2 * 4


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
    assert len(figures(tmp_path / "run")) == ARMS * 2 * 4


def finish(process: subprocess.Popen[bytes]) -> None:
    _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told.decode()


def wait_until_asked(server: LoopbackServer, count: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while len(server.requests) < count and process.poll() is None and time.monotonic() < until:
        time.sleep(0.001)


def journaled(out: Path) -> int:
    """Calls on disk."""
    if not (out / "journal.sqlite").exists():
        return 0
    with sqlite3.connect(out / "journal.sqlite") as journal:
        tables = {row[0] for row in journal.execute("SELECT name FROM sqlite_master")}
        found = journal.execute("SELECT count(*) FROM calls").fetchone() if "calls" in tables else (0,)
    journal.close()
    return int(found[0])


def figures(out: Path) -> list[tuple[Any, ...]]:
    """Every row but for whose run it is and how long things took."""
    with duckdb.connect() as database:
        return database.execute(
            "SELECT * EXCLUDE (run_id, latency_seconds) FROM read_parquet(?)", [str(out / "records.parquet")]
        ).fetchall()
