"""A run as a process of its own, to be killed or let finish, and what it leaves behind."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from tests.cli.running import command
from tests.lab.hosting import CIRCLE, FREE, arm, customer_of, plan_text
from tests.loopback import LoopbackServer

PLAN = plan_text(
    CIRCLE,
    *map(arm, ("reflect", "single", "consistency", "court", "council")),
    FREE,
    before='name = "kill"\nseeds = [1, 2]\n[concurrency]\ncalls = 6\nworkers = 1\n',
)
JUDGEMENTS = PLAN.count("[[arms]]") * 2 * 4


def start(
    plan: Path, out: Path, server: LoopbackServer, before: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    """The run, or what is left of it."""
    return subprocess.Popen(
        command("lab", "run", str(plan), "--out", str(out), "--json"),
        env=customer_of(server),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=before,
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    """Let the run come to its end."""
    _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told.decode()


def wait_until_asked(server: LoopbackServer, count: int, process: subprocess.Popen[bytes]) -> None:
    """Until so many calls arrived, or the run is over."""
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
