"""Providers that are out for a while: a run waits for them visibly, and loses nothing to them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from firecircle.cli.main import run
from firecircle.lab.runs.folder import RunFolder
from firecircle.settings import WaitingTable
from firecircle.telling.words import shown_pause
from firecircle.voices.hosted import voice
from firecircle.voices.outages import Lost, Outages, StillOut
from tests.cli.running import endpoint
from tests.lab.hosting import CIRCLE, TRIO, arm, opinion, plan_text
from tests.loopback import Answer, ChatRequest, LoopbackServer, failure

PLAN = plan_text(
    CIRCLE,
    arm("parallel"),
    before="[concurrency]\ncalls = 6\n",
    circle="max_rounds = 2\nenforce_quorum = false\ntimeout_per_round = 2\n",
)
JUDGEMENTS = 8
QUICKLY = "[waiting]\nfirst_seconds = 0.2\nlongest_seconds = 0.4\n"


@pytest.fixture(autouse=True)
def _hosted(settings_file: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    settings_file(QUICKLY)
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")


@pytest.fixture
def lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run the plan into a folder; the exit status and what was printed."""
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)

    def ran(server: LoopbackServer, folder: str = "run", *options: str) -> tuple[int, str, str]:
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        status = run(["lab", "run", str(plan), "--out", str(tmp_path / folder), "--no-save", *options])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return ran


def figures(folder: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect() as database:
        return database.execute(
            "SELECT * EXCLUDE (run_id, latency_seconds, attempts) FROM read_parquet(?)",
            [str(folder / "records.parquet")],
        ).fetchall()


def test_a_server_that_is_down_in_the_middle_costs_a_pause_and_nothing_else(
    lab: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    with endpoint(opinion) as server:
        assert lab(server, "calm")[0] == 0
        calm_calls = len(server.requests)
    back_at = 0.0
    refused = 0

    def script(request: ChatRequest) -> Answer:
        nonlocal back_at, refused
        if len(server.requests) == 10 and not back_at:
            back_at = time.monotonic() + 3.5
        if time.monotonic() < back_at:
            refused += 1
            return failure(503, "down for a moment")
        return opinion(request)

    with endpoint(script) as server:
        status, out, err = lab(server)
    assert status == 0, out + err
    assert re.search(r"paused until \d\d:\d\d:\d\d: openrouter is out \(down for a moment \(HTTP 503\)", err)
    assert "going on" in err
    assert figures(tmp_path / "run") == figures(tmp_path / "calm")
    assert len(server.requests) - refused == calm_calls, "nobody who had answered was asked again"
    assert RunFolder(tmp_path / "run").pause is None


def test_one_long_retry_after_makes_the_run_wait_that_long(
    lab: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    refused_at: list[float] = []

    def script(request: ChatRequest) -> Answer:
        if request.model == TRIO[1] and (not refused_at or time.monotonic() < refused_at[0] + 2.5):
            refused_at.append(time.monotonic())
            return failure(429, "too many", retry_after="2.5")
        return opinion(request)

    with endpoint(script) as server:
        status, out, err = lab(server, "run", "--json")
    assert status == 0, out + err
    assert f": {TRIO[1]} is out (too many (HTTP 429)" in err
    told = json.loads(out)
    assert {arm["failed"] for arm in told["arms"].values()} == {0}
    assert {arm["voices_lost"] for arm in told["arms"].values()} == {0}
    assert sum(arm["records"] for arm in told["arms"].values()) == JUDGEMENTS
    assert len(refused_at) <= 6, "those that were under way, and no more"


def test_an_absurd_retry_after_does_not_end_a_run(
    lab: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voice, "Backoff", partial(voice.Backoff, longest_pause=0.2))
    refused = 0

    def script(request: ChatRequest) -> Answer:
        nonlocal refused
        if request.model == TRIO[1] and refused < 2:
            refused += 1
            return failure(429, "too many", retry_after="Fri, 31 Dec 9999 23:59:59 GMT")
        return opinion(request)

    with endpoint(opinion) as server:
        assert lab(server, "calm")[0] == 0
    with endpoint(script) as server:
        status, _, err = lab(server)
    assert (status, refused) == (0, 2), err
    assert figures(tmp_path / "run") == figures(tmp_path / "calm")


async def _one_by_one(function: Callable[[], Awaitable[None]], times: int) -> None:
    for _ in range(times):
        await function()


async def test_a_wait_beyond_all_patience_is_tried_again_after_the_longest_pause() -> None:
    waiting = WaitingTable(first_seconds=0.01, longest_seconds=0.1, patience_seconds=0.5)
    outages = Outages(waiting, lambda _: None)
    began = time.monotonic()
    pauses = []

    async def refused() -> None:
        outages.lost("h", "m", Lost("rate_limited", "too many", 1e8), began=time.monotonic())
        started = time.monotonic()
        async with outages.passage():
            pauses.append(time.monotonic() - started)

    with pytest.raises(StillOut, match=r"m is still out after \d s: too many"):
        await _one_by_one(refused, 20)
    assert time.monotonic() - began > 0.3
    assert all(pause > 0.09 for pause in pauses)
    assert 2 <= len(pauses) <= 5, "a pause of 0.1 s each until 0.5 s are over, fewer on a busy machine"

    outages = Outages(waiting, lambda _: None)
    outages.lost("h", "m", Lost("rate_limited", "too many", 0.3), began=time.monotonic())
    started = time.monotonic()
    async with outages.passage():
        assert 0.28 < time.monotonic() - started < 0.45, "a wait within the patience is kept"


def test_a_provider_that_stays_out_stops_the_run_and_the_same_command_goes_on(
    lab: Callable[..., tuple[int, str, str]], settings_file: Callable[[str], Path], tmp_path: Path
) -> None:
    settings_file(QUICKLY + "patience_seconds = 0.5\n")
    with endpoint(lambda _: Answer(delivery="reset")) as server:
        status, out, _ = lab(server)
    assert status == 1
    assert "stopped: openrouter is still out after" in out
    assert "give the same command when it answers again: the run goes on" in out
    assert not (tmp_path / "run" / "records.parquet").exists()
    with endpoint(opinion) as server:
        assert lab(server)[0] == 0
    assert len(figures(tmp_path / "run")) == JUDGEMENTS


def test_a_voice_lost_to_its_server_again_and_again_is_told_and_mended_by_the_same_command(
    lab: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    with endpoint(opinion) as server:
        assert lab(server, "calm")[0] == 0
    is_broken = True

    def script(request: ChatRequest) -> Answer:
        if is_broken and request.model == TRIO[2]:
            return failure(503, "this one only")
        return opinion(request)

    with endpoint(script) as server:
        status, out, _ = lab(server)
        assert status == 4
        assert f"{JUDGEMENTS} lost a voice because a provider did not answer; firecircle lab run run" in out
        assert RunFolder(tmp_path / "run").mendable == JUDGEMENTS
        is_broken = False
        asked = len(server.requests)
        status, out, _ = lab(server)
        assert status == 0
        assert "lost a voice" not in out
        assert asked < len(server.requests)
    assert figures(tmp_path / "run") == figures(tmp_path / "calm")


def test_a_pause_of_days_is_told_with_its_date() -> None:
    assert re.search(r"until \d\d:\d\d:\d\d: x is out", shown_pause("x", "busy", time.time() + 600))
    assert re.search(r"until \d{4}-\d\d-\d\d \d\d:\d\d: x is", shown_pause("x", "busy", time.time() + 9e5))
