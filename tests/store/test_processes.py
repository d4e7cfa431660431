"""Real processes: killed in the middle, writing at once, and running out of room."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firecircle import FireCircleResult
from firecircle.cli.main import run
from firecircle.store.finding import CircleSummary, Filters
from firecircle.store.opening import Store, open_store
from firecircle.store.transfer import export_lines
from tests.store.samples import VOICES

ROOT = Path(__file__).resolve().parents[2]


NEVER = 1_000_000


def holding(place: str, name: str, circles: int, stuck_at: int) -> subprocess.Popen[bytes]:
    """A process of its own that holds circles, whose voices never answer from a certain call on."""
    command = [sys.executable, "-m", "tests.store.sitting", place, name, str(circles), str(stuck_at)]
    return subprocess.Popen(command, cwd=ROOT)


def sitting_in(store: Store, answers: int) -> CircleSummary:
    """The circle that sits, once so many answers are written down."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for one in store.circles.find().circles:
            if one.status == "sitting" and len(store.circles.load(one.id).calls) == answers:
                return one
        time.sleep(0.05)
    raise AssertionError("nothing was written down")


@pytest.mark.parametrize("stuck_at", [1, 3, 4, 8])
def test_a_circle_killed_at_any_point_leaves_what_was_heard(
    store: Store, place: str, stuck_at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with holding(place, "killed", 1, stuck_at) as process:
        name = sitting_in(store, stuck_at - 1).id
        assert run(["circles", "show", name, "--store", place]) == 0
        assert "still running" in capsys.readouterr().out
        process.kill()
    (left,) = store.circles.find(Filters(status="interrupted")).circles
    assert (left.id, store.circles.count(Filters(status="sitting"))) == (name, 0)
    result = store.circles.load(name)
    assert isinstance(result, FireCircleResult)
    heard = [said.model for held in result.dialogue_history for said in held.evaluations]
    assert heard == [*VOICES, *VOICES, *VOICES][: stuck_at - 1]
    assert (result.stopped, result.consensus) == ("interrupted", None)

    assert run(["circles", "show", name[:8], "--verbose", "--store", place]) == 0
    shown = capsys.readouterr().out
    assert "interrupted" in shown
    assert ("killed was judged by ash" in shown) == bool(heard)
    (line,) = list(export_lines(store.circles, Filters()))[1:]
    assert json.loads(line)["document"]["stopped"] == "interrupted"
    assert sum(store.circles.prune(Filters(label="killed"))) == 1


def test_many_circles_of_two_processes_are_all_kept(store: Store, place: str) -> None:
    names = ("left", "right")
    processes = [holding(place, name, 20, NEVER) for name in names]
    for process in processes:
        assert process.wait(60) == 0
    for name in names:
        kept = list(store.circles.each(Filters(label=name)))
        assert len(kept) == 20
        for summary, result in kept:
            assert summary.status == "all_rounds_held"
            assert isinstance(result, FireCircleResult)
            assert len(result.calls) == 9
    assert store.circles.count(Filters(text="left judged")) == 20


def test_a_sitting_circle_is_called_off_from_another_process(store: Store, place: str) -> None:
    with holding(place, "long", 1, 2) as process:
        name = sitting_in(store, 1).id
        assert run(["circles", "cancel", name[:8], "--store", place]) == 0
        process.wait(30)
    assert store.circles.summary(name).status == "cancelled"


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be limited so there")
def test_a_full_disk_never_costs_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "circles.sqlite"
    open_store(path).close()
    limit = path.stat().st_size + 40_000
    code = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "from firecircle.cli.main import run\n"
        "sys.exit(run(sys.argv[1:]))"
    )
    arguments = ["evaluate", "--system", "-", "--user", "hello", "--turn", "1"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--store", str(path)],
        input="word " * 50_000,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "OPENROUTER_API_KEY": ""},
    )
    assert done.returncode == 2, done.stderr
    assert "no alarm" in done.stdout
    assert done.stderr.startswith(f"warning: not saved: store: {path}: ")
    assert done.stderr.count("\n") == 1
    with open_store(path) as store:
        assert store.circles.count() == 0
