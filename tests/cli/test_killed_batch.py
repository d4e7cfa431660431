"""A batch that is killed again and again, then the same command until it is done: nothing is paid twice."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import TRIO, Ran, command, endpoint
from tests.lab.hosting import opinion
from tests.loopback import LoopbackServer

Cli = Callable[..., Ran]
PROMPTS, KILLS, AT_ONCE, VOICES = 8, 3, 3, 3

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL there")


class Batch:
    """The command in a home of its own, to be killed or let finish."""

    def __init__(self, home: Path, server: LoopbackServer, *options: str) -> None:
        self.home, self.server = home, server
        rows = [{"id": f"p{n}", "text": f"As we agreed, when do you open? {n}"} for n in range(PROMPTS)]
        (home / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        self._env = {
            **os.environ,
            "HOME": str(home),
            **{f"XDG_{kind}_HOME": str(home / kind) for kind in ("DATA", "CONFIG", "CACHE")},
            "OPENROUTER_API_KEY": "sk-test",
            "FIRECIRCLE_OPENROUTER_BASE_URL": server.base_url,
        }
        self._command = command(
            *("evaluate", "--batch", "b.jsonl", "--models", TRIO, "--at-once", str(AT_ONCE)),
            *("--out", "rows.jsonl", "--quiet", "--fail-on", "never", *options),
        )

    def killed_after(self, calls: int) -> int:
        """Kill it when so many more calls arrived; how many calls were lost."""
        asked, on_disk = len(self.server.requests), self.journaled
        with subprocess.Popen(
            self._command, env=self._env, cwd=self.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            until = time.monotonic() + 60
            while len(self.server.requests) < asked + calls and process.poll() is None:
                assert time.monotonic() < until
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
        while self.server.in_flight:  # calls that were on their way when it died
            time.sleep(0.002)
        return len(self.server.requests) - asked - (self.journaled - on_disk)

    def finished(self) -> str:
        """Let it come to its end; its error stream."""
        ran = subprocess.run(
            self._command, env=self._env, cwd=self.home, capture_output=True, text=True, timeout=120
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stderr

    @property
    def journals(self) -> list[Path]:
        return list((self.home / "DATA/firecircle/batches").glob("*/journal.sqlite"))

    @property
    def journaled(self) -> int:
        """Calls on disk."""
        if not self.journals:
            return 0
        file = sqlite3.connect(self.journals[0])
        try:
            return int(file.execute("SELECT count(*) FROM calls").fetchone()[0])
        except sqlite3.OperationalError:  # killed before there were tables
            return 0
        finally:
            file.close()

    def circles(self) -> list[str]:
        """The prompts whose circles are in the store."""
        listed = subprocess.run(
            command("circles", "list", "--batch", "b", "--json", "--limit", "1000"),
            env=self._env,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=True,
        )
        return sorted(circle["record_id"] for circle in json.loads(listed.stdout)["circles"])

    def rows(self) -> list[tuple[object, ...]]:
        """Id, verdict, F and calls of every row that was written."""
        rows = map(json.loads, (self.home / "rows.jsonl").read_text().splitlines())
        return [(row["id"], row["verdict"], row["falsehood"], row["calls"]) for row in rows]


@pytest.mark.parametrize("options", [(), ("--no-save",), ("--mode", "parallel")])
def test_nothing_is_paid_twice(tmp_path: Path, options: tuple[str, ...]) -> None:
    dice = random.Random(7)
    with endpoint(lambda request: opinion(request, latency=0.03)) as server:
        batch = Batch(tmp_path, server, *options)
        lost = [batch.killed_after(dice.randint(8, 14)) for _ in range(KILLS)]
        assert "resuming: " in batch.finished()
        # A call is paid again only if its answer was not on disk when the process died.
        needed = sum(int(str(calls)) for *_, calls in batch.rows())
        assert len(server.requests) == needed + sum(lost)
        assert max(lost) <= AT_ONCE * VOICES
    assert batch.journals == []
    if "--no-save" not in options:
        assert batch.circles() == sorted(f"b:p{n}" for n in range(PROMPTS))


def test_the_verdicts_are_those_of_a_batch_that_was_never_killed(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    with endpoint(lambda request: opinion(request, latency=0.03)) as server:
        whole, killed = (Batch(tmp_path / name, server, "--seed", "1") for name in ("whole", "killed"))
        assert whole.finished() == ""
        for calls in (12, 20):
            killed.killed_after(calls)
        assert "resuming: " in killed.finished()
    assert killed.rows() == whole.rows()


def test_a_finished_batch_is_judged_again_and_keeps_both(tmp_path: Path) -> None:
    with endpoint(opinion) as server:
        batch = Batch(tmp_path, server, "--seed", "1")
        batch.finished()
        needed = len(server.requests)
        assert batch.finished() == ""
        assert len(server.requests) == 2 * needed
    assert len(batch.circles()) == 2 * PROMPTS


def test_a_batch_is_judged_by_one_process_at_a_time(tmp_path: Path) -> None:
    with endpoint(lambda request: opinion(request, latency=1.0)) as server:
        batch = Batch(tmp_path, server)
        first = subprocess.Popen(batch._command, env=batch._env, cwd=tmp_path, stdout=subprocess.DEVNULL)
        try:
            while not server.requests:
                time.sleep(0.01)
            second = subprocess.run(
                batch._command, env=batch._env, cwd=tmp_path, capture_output=True, text=True
            )
        finally:
            first.kill()
            first.wait()
    assert second.returncode == 2
    assert second.stderr == (
        "error: FILE: another process is judging this batch; wait for it, or add --name NAME\n"
    )


def test_a_data_folder_that_cannot_be_written_costs_only_the_resuming(tmp_path: Path) -> None:
    with endpoint(opinion) as server:
        batch = Batch(tmp_path, server, "--no-save")
        (tmp_path / "DATA").write_text("a file")
        assert "warning: this batch cannot be resumed: " in batch.finished()
    assert len(batch.rows()) == PROMPTS
