"""A run's circles in the store: seen while they sit, one for each judgement, never at the run's cost."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError
from firecircle.lab.plan import plan_of
from firecircle.lab.report.retelling import instructive, retell
from firecircle.lab.runs import live
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.runs.live import stored_ids
from firecircle.lab.runs.runner import RunState
from firecircle.lab.runs.starting import complete, open_run
from firecircle.store.finding import CircleSummary, Filters
from firecircle.store.opening import Store, open_store
from tests.lab.hosting import CIRCLE, FREE, arm, opinion, plan_text
from tests.lab.killing import wait_until_asked
from tests.lab.live_runs import PLAN, finish, gated, running, until
from tests.loopback import Answer, ChatRequest, LoopbackServer, failure

ARMS = plan_text(
    CIRCLE,
    arm("no chair", "no_chair"),
    *map(arm, ("single", "reflect")),
    arm("cascade", "", "band = [0.0, 1.0]"),
    arm("guided", "", "folds = 2"),
    FREE,
    sample=3,
)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def kept(filters: Filters | None = None) -> tuple[CircleSummary, ...]:
    """What the user's store holds, the newest first."""
    with open_store() as store:
        return store.circles.find(filters, limit=1000).circles


async def carried_out(
    server: LoopbackServer,
    monkeypatch: pytest.MonkeyPatch,
    out: Path,
    text: str,
    *,
    retry_failed: bool = False,
) -> tuple[RunFolder, RunState]:
    """A run in this process that keeps its circles in the user's store."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")
    monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
    folder = open_run(plan_of(text, "plan.toml"), text, out.parent, out=out)
    with Store() as store:
        state = await complete(
            folder, lambda _: nullcontext(lambda _: None), retry_failed=retry_failed, store=store
        )
    return folder, state


def test_a_circle_of_a_run_fills_in_while_another_process_holds_it(plan: Path, tmp_path: Path) -> None:
    plan.write_text(PLAN.replace("sample = 2", "sample = 1"))
    with (
        gated() as (server, gate),
        running(server, plan, tmp_path / "run") as process,
        open_store() as store,
    ):
        sitting = Filters(run_id="run", status="sitting")
        (one,) = until(lambda: store.circles.find(sitting).circles)
        assert (one.arm, one.record_id is not None, one.label is not None) == ("circle", True, True)
        until(lambda: heard(store, one.id) == [0])  # the round is saved a moment after its circle
        gate.let(1)
        until(lambda: heard(store, one.id) == [1])
        gate.let(2)
        until(lambda: heard(store, one.id) == [3, 0])
        with pytest.raises(ConfigError, match="belongs to the run run; stop that run"):
            store.circles.ask_to_cancel(one.id)
        gate.open = True
        finish(process)
        assert heard(store, one.id) == [3, 3]
        assert store.circles.summary(one.id).status == "all_rounds_held"
        assert store.circles.count() == 1


def heard(store: Store, name: str) -> list[int]:
    """How many answers the store has of a circle, round by round."""
    result = store.circles.load(name)
    assert isinstance(result, FireCircleResult)
    return [len(held.evaluations) for held in result.dialogue_history]


def test_a_run_killed_at_random_points_keeps_one_circle_for_each_judgement(
    plan: Path, tmp_path: Path
) -> None:
    plan.write_text(PLAN.replace("sample = 2", "sample = 6"))
    chance = random.Random(6)
    out = tmp_path / "run"
    with gated() as (server, gate):
        for _ in range(4):
            with running(server, plan, out) as process:
                asked = len(server.requests)
                wait_until_asked(server, asked + 1, process)
                gate.let(chance.randrange(1, 12))
                until(kept)  # the first process may take its time to open the store
                time.sleep(chance.uniform(0.05, 0.3))
                os.kill(process.pid, signal.SIGKILL)
        assert {one.status for one in kept()} >= {"interrupted"}
        gate.open = True
        with running(server, plan, out) as process:
            assert "warning" not in finish(process)
        with running(server, plan, out) as process:  # once more: nothing is left to do
            finish(process)
    over = kept()
    assert Counter(one.status for one in over) == {"all_rounds_held": 6}
    assert len({one.record_id for one in over}) == 6
    with open_store() as store:
        assert all(heard(store, one.id) == [3, 3] for one in over)


@pytest.mark.parametrize("how", ["option", "settings"])
def test_nothing_is_kept_when_told_so(
    plan: Path, tmp_path: Path, settings_file: Callable[[str], Path], how: str
) -> None:
    if how == "settings":
        settings_file("[store]\nsave = false\n")
    with gated() as (server, gate):
        gate.open = True
        with running(server, plan, tmp_path / "run", *(["--no-save"] if how == "option" else [])) as process:
            assert "warning" not in finish(process)
    assert kept() == ()


def test_a_store_that_cannot_be_used_costs_one_warning_and_no_run(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("no database, but the notes of somebody\n" * 40)
    monkeypatch.setenv("FIRECIRCLE_STORE", str(notes))
    with gated() as (server, gate):
        gate.open = True
        with running(server, plan, tmp_path / "run") as process:
            told = finish(process)
    assert told.count("warning:") == 1
    last = told.splitlines()[-1]
    assert last.startswith("warning: not saved: 2 of this run's circles are not in the store: store: ")
    assert "file is not a database" in last
    assert json.loads((tmp_path / "run" / "finished.json").read_text())["arms"]["circle"]["records"] == 2


def test_a_store_that_breaks_meanwhile_costs_one_warning_and_no_run(plan: Path, tmp_path: Path) -> None:
    with gated() as (server, gate), running(server, plan, tmp_path / "run") as process:
        with open_store() as store:
            place = store.name
            until(lambda: store.circles.find(Filters(status="sitting")).circles)
        with closing(sqlite3.connect(place)) as other:
            other.execute("DROP TABLE documents")
        gate.open = True
        told = finish(process)
    assert told.count("warning:") == 1
    assert told.splitlines()[-1].startswith(
        "warning: not saved: 2 of this run's circles are not in the store"
    )
    assert "no such table: documents" in told
    assert json.loads((tmp_path / "run" / "finished.json").read_text())["arms"]["circle"]["records"] == 2


async def test_a_store_that_is_held_up_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SECONDS_TO_FINISH", 0.2)
    monkeypatch.setattr(live, "A_MOMENT", 0.2)
    monkeypatch.setattr(live, "MOST_UNWRITTEN", 2)
    with open_store() as store:
        place = store.name
    text = PLAN.replace("sample = 2", "sample = 40")
    async with LoopbackServer(opinion) as server:
        with closing(sqlite3.connect(place)) as other:
            other.execute("BEGIN IMMEDIATE")
            folder, state = await carried_out(server, monkeypatch, tmp_path / "run", text)
            assert folder.state == "finished"
            assert state.not_stored is not None
            assert "of this run's circles are not in the store: it is locked" in state.not_stored
            assert state.not_stored.startswith("40 ")
            other.rollback()
    # What had to wait in memory until now were those under way (12 at most) and 2, not all that came after.
    until(lambda: not any(one.name == "circle-recorder" for one in threading.enumerate()))
    assert 0 < len(kept()) <= 14
    # Asked for once more, the run is left as it is, and the store gets the rest from the journal.
    _, again = await carried_out(server, monkeypatch, tmp_path / "run", text)
    assert again.not_stored is None
    assert Counter(one.status for one in kept()) == {"all_rounds_held": 40}


async def test_the_circles_of_every_arm_are_kept_once_and_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LoopbackServer(opinion) as server:
        folder, state = await carried_out(server, monkeypatch, tmp_path / "run", ARMS)
    assert (folder.state, state.not_stored) == ("finished", None)
    circles = kept()
    assert Counter(one.arm for one in circles) == {"circle": 3, "no chair": 3, "cascade/second": 3}
    assert {one.run_id for one in circles} == {"run"}
    assert {(one.label or "").partition(":")[0] for one in circles} <= {"attack", "benign"}
    assert any((one.label or "").startswith("attack:") for one in circles)

    ids = {one.id for one in circles}
    with open_store() as store:
        assert store.participation.database
        assert sittings(store) == 0
        for one in circles:
            loaded = store.circles.load(one.id)
            assert isinstance(loaded, FireCircleResult)
            assert loaded.circle_id == one.id
    for record in {one.record_id for one in circles}:
        for sitting in ("circle", "no chair", "cascade"):
            named = stored_ids(folder.about, sitting, "examples", str(record), 0)
            assert len(ids & set(named)) == 1
        assert not ids & set(stored_ids(folder.about, "single", "examples", str(record), 0))

    # Neither telling a dialogue again nor asking for the finished run again adds anything.
    chosen = instructive(folder.records, 0.7)
    assert any(await retell(folder, chosen))
    async with LoopbackServer(opinion) as server:
        await carried_out(server, monkeypatch, tmp_path / "run", ARMS)
    assert {one.id for one in kept()} == ids


def sittings(store: Store) -> int:
    from firecircle.rotation.tracker import stored_history

    return sum(1 for _ in stored_history(store).participations())


async def test_a_circle_that_is_tried_again_takes_the_place_of_the_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = True

    def sometimes(request: ChatRequest) -> Answer:
        return failure(400, "not today") if broken else opinion(request)

    async with LoopbackServer(sometimes) as server:
        await carried_out(server, monkeypatch, tmp_path / "run", PLAN)
        before = kept()
        assert [one.status for one in before] == ["aborted"] * 2
        with open_store() as store:
            store.circles.set_label(before[0].id, "mine")
        broken = False
        await carried_out(server, monkeypatch, tmp_path / "run", PLAN, retry_failed=True)
    after = kept()
    assert [one.status for one in after] == ["all_rounds_held"] * 2
    assert [(one.pk, one.id) for one in after] == [(one.pk, one.id) for one in before]
    assert after[0].label == "mine"


async def test_two_runs_of_a_plan_keep_their_own_circles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LoopbackServer(opinion) as server:
        for name in ("one", "two"):
            await carried_out(server, monkeypatch, tmp_path / name, PLAN)
    assert Counter(one.run_id for one in kept()) == {"one": 2, "two": 2}
    assert not any("-" in one.id for one in kept())
