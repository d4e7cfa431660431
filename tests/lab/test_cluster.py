"""`lab run --engine ray` on a real cluster of worker processes: the same rows as on one machine, whoever dies."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from tests.cli.running import assert_one_line_of_trouble, command, endpoint, ran_apart
from tests.lab.hosting import CIRCLE, FREE, arm, customer_of, opinion, plan_text
from tests.lab.killing import figures, journaled
from tests.lab.scan.test_scan import READERS, as_json_lines, table
from tests.loopback import LoopbackServer

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="the extra `ray` is not installed")

PLAN = plan_text(
    CIRCLE,
    *map(arm, ("reflect", "consistency", "guided")),
    FREE,
    before='name = "cluster"\n[concurrency]\ncalls = 6\nworkers = 2\n[budget]\ntokens = 10000000\n',
)
CLUSTER = """
import sys, time
from firecircle.lab.cluster import ray_running
with ray_running(3) as ray:
    print(ray.get_runtime_context().gcs_address, flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True)
class Cluster:
    address: str
    holder: int

    def workers(self, actor: str = "_Holder") -> list[psutil.Process]:
        """Those of this cluster alone."""
        found = []
        for process in psutil.Process(self.holder).children(recursive=True):
            with suppress(psutil.Error):
                if f"ray::{actor}" in " ".join(process.cmdline()):
                    found.append(process)
        return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One cluster for all: Ray takes seconds to start."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_AUTH_MODE", "token")
        environment.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        holder = subprocess.Popen(
            [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert holder.stdout
        assert holder.stdin
        yield Cluster(holder.stdout.readline().strip(), holder.pid)
        holder.stdin.close()
        holder.wait(60)
        holder.stdout.close()


def test_rows_are_those_of_one_machine_whoever_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    with endpoint(lambda request: opinion(request, latency=0.05)) as server:
        calm, storm = tmp_path / "calm", tmp_path / "storm"
        assert started(server, plan, calm).wait(300) == 0
        calls = len(server.requests)

        driver = started(server, plan, storm, "--engine", f"ray:{cluster.address}")
        wait_until(lambda: len(server.requests) >= calls + 5 and len(cluster.workers()) >= 2, driver)
        workers = cluster.workers()
        assert len(workers) >= 2
        workers[0].kill()
        wait_until(lambda: len(server.requests) >= calls + calls // 2, driver)
        assert driver.poll() is None
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        time.sleep(0.2)  # what the server was about to answer
        before, asked = journaled(storm), len(server.requests)
        assert 5 < before < calls
        assert started(server, plan, storm, "--engine", f"ray:{cluster.address}").wait(300) == 0
        assert len(server.requests) - asked == calls - before
    assert journaled(storm) == calls
    assert figures(storm) == figures(calm)


def test_a_batch_on_the_cluster_writes_the_rows_of_processes(cluster: Cluster, tmp_path: Path) -> None:
    corpus = as_json_lines(tmp_path / "corpus.jsonl")
    arguments = ["batch", str(corpus), *READERS, "--part-rows", "5", "--workers", "2", "--out"]
    here = ran_apart(*arguments, str(tmp_path / "here"), seconds=300)
    assert here.status == 0, here.err
    there = ran_apart(
        *arguments,
        str(tmp_path / "there"),
        "--engine",
        f"ray:{cluster.address}",
        "--json",
        seconds=300,
    )
    assert there.status == 0, there.err
    assert json.loads(there.out)["rows"] == 24
    assert table(tmp_path / "there") == table(tmp_path / "here")


def test_a_batch_on_the_cluster_goes_on_whoever_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    """A worker and then the driver; finished parts are left as they are, and every row is judged once."""
    corpus = as_json_lines(tmp_path / "corpus.jsonl", copies=4)
    arguments = ["batch", str(corpus), *READERS, "--part-rows", "6", "--workers", "2", "--out"]
    here, out = tmp_path / "here", tmp_path / "out"
    assert ran_apart(*arguments, str(here), seconds=300).status == 0

    there = [*arguments, str(out), "--engine", f"ray:{cluster.address}"]
    driver = subprocess.Popen(command(*there), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: len(list(out.glob("shards/*.parquet"))) >= 2, driver)
    cluster.workers()[0].kill()
    wait_until(lambda: len(list(out.glob("shards/*.parquet"))) >= 5, driver)
    assert driver.poll() is None, "a lost worker ends nothing"
    driver.kill()
    driver.wait()
    wait_until_gone(lambda: cluster.workers())
    finished = {path: path.stat().st_mtime_ns for path in out.glob("shards/*.parquet")}
    assert 5 <= len(finished) < 16
    done = ran_apart(*there, "--json", seconds=300)
    assert done.status == 0, done.err
    assert json.loads(done.out)["rows"] == 4 * 24
    assert all(path.stat().st_mtime_ns == then for path, then in finished.items())
    assert table(out) == table(here)


def test_ctrl_c_ends_a_run_on_the_cluster_in_a_line_and_it_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace("sample = 4", "sample = 2"))
    with endpoint(lambda request: opinion(request, latency=0.2)) as server:
        driver = started(server, plan, tmp_path / "run", "--engine", f"ray:{cluster.address}", told=True)
        wait_until(lambda: len(server.requests) >= 3, driver)
        told = pressed_ctrl_c(driver)
        assert "the same command goes on where this one stopped" in told
        assert started(server, plan, tmp_path / "run").wait(300) == 0
        # Calls that were under way when it ended were called off, and are made again; no other is.
        assert len(server.requests) - journaled(tmp_path / "run") <= 6


def test_ctrl_c_ends_a_batch_on_the_cluster_in_a_line_and_it_goes_on(
    cluster: Cluster, tmp_path: Path
) -> None:
    corpus = as_json_lines(tmp_path / "corpus.jsonl", copies=8)
    out = tmp_path / "out"
    arguments = ["batch", str(corpus), *READERS, "--part-rows", "4", "--workers", "2", "--out", str(out)]
    driver = subprocess.Popen(
        command(*arguments, "--engine", f"ray:{cluster.address}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_until(lambda: len(list(out.glob("shards/*.parquet"))) >= 2, driver)
    told = pressed_ctrl_c(driver)
    assert "are saved; continue with: firecircle batch" in told
    kept = {path: path.stat().st_mtime_ns for path in out.glob("shards/*.parquet")}
    done = ran_apart(*arguments, "--json", seconds=300)
    assert done.status == 0, done.err
    assert json.loads(done.out)["rows"] == 8 * 24
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items())


def pressed_ctrl_c(driver: subprocess.Popen[bytes]) -> str:
    """What the driver tells when everything in its terminal is interrupted."""
    assert driver.poll() is None
    os.killpg(driver.pid, signal.SIGINT)
    out, told = driver.communicate(timeout=120)
    assert driver.returncode == 130, told
    assert b"Traceback" not in told
    assert b".cc:" not in told  # nor a line of Ray's own log
    assert out == b""  # Ray would tell there of workers that it ended
    return told.decode()


def test_a_wrong_engine_is_one_line(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    wrong = ran_apart("lab", "run", str(plan), "--out", str(tmp_path / "x"), "--engine", "rat")
    assert_one_line_of_trouble(wrong, "--engine", "ray:ADDRESS")


def wait_until(happens: Callable[[], bool], driver: subprocess.Popen[bytes]) -> None:
    """Until that is so, or the run is over."""
    until = time.monotonic() + 300
    while not happens() and driver.poll() is None and time.monotonic() < until:
        time.sleep(0.01)


def wait_until_gone(there: Callable[[], object]) -> None:
    """Ray ends the workers of a driver that is gone."""
    until = time.monotonic() + 60
    while there() and time.monotonic() < until:
        time.sleep(0.1)


def started(
    server: LoopbackServer, plan: Path, out: Path, *more: str, told: bool = False
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command("lab", "run", str(plan), "--out", str(out), "--json", *more),
        env=customer_of(server),
        stdout=subprocess.PIPE if told else subprocess.DEVNULL,
        stderr=subprocess.PIPE if told else subprocess.DEVNULL,
        start_new_session=told,
    )
