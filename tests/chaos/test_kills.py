"""kill -9 at random moments of a run and of circles that are being kept: nothing is lost, repeated or half there.

`pytest tests/chaos --long` kills 200 times instead of 8.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from firecircle import FireCircleResult
from firecircle.store.finding import Filters
from firecircle.store.opening import open_store
from tests.cli.running import endpoint
from tests.lab.hosting import opinion
from tests.lab.killing import JUDGEMENTS, PLAN, figures, finish, journaled, start, wait_until_asked
from tests.loopback import Answer, ChatRequest

ROOT = Path(__file__).resolve().parents[2]
KILLS = 4, 100
"""Of a run, and as many of circles that are being kept; the second number is the long one."""
MOST_OF_A_RUN = 10
LATEST = 0.3
"""Seconds after a call within which a run is killed: some die while they load, some while they write."""


def test_no_journaled_call_is_repeated_and_no_record_lost(is_long: bool, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    numbers = itertools.count()
    bodies: dict[int, bytes] = {}

    def numbered(request: ChatRequest) -> Answer:
        """The answer of `opinion` and, as a thought that nobody is shown, its number: the journal has it."""
        number = next(numbers)
        bodies[number] = request.raw
        answer = opinion(request, latency=0.01)
        body = json.loads(answer.body)
        body["choices"][0]["message"]["reasoning"] = f"answer number {number}"
        return replace(answer, body=json.dumps(body).encode())

    with endpoint(numbered) as server:
        calm = tmp_path / "calm"
        finish(start(plan, calm, server))
        calls = journaled(calm)
        assert calls == len(server.requests) > 30
        killed = 0
        for run in itertools.count():
            out = tmp_path / f"storm {run}"
            chance = random.Random(run)
            starts: list[tuple[set[int], int]] = []
            """What the journal held at each start, and the number of the first answer after it."""
            is_over = False
            while not is_over:
                starts.append((answers_in(out), len(server.requests)))
                process = start(plan, out, server)
                if len(starts) > MOST_OF_A_RUN or killed == KILLS[is_long]:
                    break
                wait_until_asked(server, len(server.requests) + chance.randrange(calls // 10), process)
                time.sleep(chance.random() * LATEST)
                is_over = process.poll() is not None
                if not is_over:
                    os.kill(process.pid, signal.SIGKILL)
                    process.communicate()
                    killed += 1
                    time.sleep(0.05)  # what the server was about to answer
            finish(process)
            needed = Counter(bodies[number] for number in answers_in(out))
            for (before, first), (_, end) in itertools.pairwise([*starts, (set(), len(bodies))]):
                had = Counter(bodies[number] for number in before)
                asked = Counter(bodies[number] for number in range(first, end))
                assert all(had[body] < needed[body] for body in asked), "a journaled call was repeated"
            assert journaled(out) == calls
            assert figures(out) == figures(calm)
            assert len(figures(out)) == JUDGEMENTS
            if killed == KILLS[is_long]:
                break


def test_what_was_kept_before_a_kill_can_be_read_whole(is_long: bool, tmp_path: Path) -> None:
    place = str(tmp_path / "circles.sqlite")
    chance = random.Random(5)
    kept: dict[str, str] = {}
    with open_store(place) as store:
        for number in range(KILLS[is_long]):
            holding = [sys.executable, "-m", "tests.store.sitting", place, str(number), "200", "1000000"]
            with subprocess.Popen(holding, cwd=ROOT) as process:
                until = time.monotonic() + 60
                while not store.circles.count(Filters(label=str(number))) and time.monotonic() < until:
                    time.sleep(0.005)
                time.sleep(chance.random() / 3)
                process.kill()
            for summary, result in store.circles.each(Filters(label=str(number))):
                assert isinstance(result, FireCircleResult)
                assert result.stopped == summary.status
                assert summary.status in ("interrupted", "all_rounds_held")
                kept[summary.id] = result.model_dump_json()
            assert store.circles.count() == len(kept), "a circle that was kept is gone"
        assert {summary.id: result.model_dump_json() for summary, result in store.circles.each()} == kept
    with closing(sqlite3.connect(place)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def answers_in(out: Path) -> set[int]:
    """The numbers of the answers that the journal holds."""
    held = journaled(out)
    if not held:
        return set()
    with closing(sqlite3.connect(out / "journal.sqlite")) as journal:
        assert journal.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        said = " ".join(row[0] for row in journal.execute("SELECT said FROM calls"))
    numbers = {int(number) for number in re.findall(r"answer number (\d+)", said)}
    assert len(numbers) == held
    return numbers
