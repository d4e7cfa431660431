"""A circle is in the store before anybody is asked, so that no call is ever made of which nothing is saved."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firecircle import FireCircleConfig, FireCircleResult, MultiNeutrosophicPrompt, fire_circle_evaluate
from firecircle.cli.main import run
from firecircle.store import recorder
from firecircle.store.finding import Filters
from firecircle.store.opening import Store, open_store
from firecircle.web.convener import Convener
from tests.cli.running import endpoint
from tests.loopback import Answer, ChatRequest, completion
from tests.scripted import PROMPT, circle, says
from tests.store.samples import VOICES

ROOT = Path(__file__).resolve().parents[2]

KILLED_BY_THE_FIRST_CALL = """
import asyncio, os, signal, sys
from firecircle import fire_circle_evaluate
from firecircle.store import recorder
from firecircle.store.opening import Store
from tests.scripted import PROMPT, circle

recorder.LONGEST_HOLD_UP = 50.0  # a busy machine may take longer than usual to open the database

async def killed(model, messages):
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(fire_circle_evaluate(
    PROMPT, circle("ash", "birch", "cedar"), caller=killed, store=Store(sys.argv[1]), label="killed"
))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL there")
def test_a_process_killed_by_its_first_call_leaves_the_circle(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_BY_THE_FIRST_CALL, place], cwd=ROOT, timeout=60)
    assert done.returncode == -9
    assert run(["circles", "list", "--json", "--store", place]) == 0
    (left,) = json.loads(capsys.readouterr().out)["circles"]
    assert (left["status"], left["label"], left["voices"]) == ("interrupted", "killed", [*VOICES])
    assert run(["circles", "show", left["id"], "--verbose", "--store", place]) == 0
    shown = capsys.readouterr().out
    assert "interrupted" in shown
    assert "As we agreed yesterday" in shown
    with open_store(place) as store:
        result = store.circles.load(left["id"])
        assert isinstance(result, FireCircleResult)
        assert (result.prompt, result.calls, result.stopped) == (PROMPT, (), "interrupted")


async def test_a_circle_of_the_viewer_is_there_when_its_first_voice_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "PATIENCE", 60.0)  # else the first connection may take longer than that
    path = tmp_path / "circles.sqlite"
    there: list[int] = []
    asked = threading.Event()
    with open_store(path) as reader, open_store(path) as store:

        def look(_: ChatRequest) -> Answer:
            there.append(reader.circles.count(Filters(label="seen")))
            asked.set()
            return completion(says(0.5))

        with endpoint(look) as hosted:
            monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test-key")
            monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", hosted.base_url)
            convener = Convener(store)
            config = FireCircleConfig(models=("a/b", "c/d"), max_rounds=1, enforce_quorum=False)
            name = await convener.convene(MultiNeutrosophicPrompt(user="hello there"), config, "seen")
            assert store.circles.summary(name).label == "seen"
            assert await asyncio.to_thread(asked.wait, 20)
            convener.close()
    assert there[0] == 1


@contextmanager
def locked(path: Path) -> Iterator[Callable[[], None]]:
    """Another writer keeps a SQLite file to itself until what this gives is called."""
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with open_store(path) as store, store.database.writing():
            held.set()
            let_go.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(10)
        yield let_go.set
    finally:
        let_go.set()
        thread.join()


async def test_a_locked_database_holds_a_circle_up_for_a_moment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "LONGEST_HOLD_UP", 0.2)
    path = tmp_path / "circles.sqlite"
    open_store(path).close()
    with locked(path) as unlock, Store(path) as store:

        async def answer(model: str, messages: list[dict[str, str]]) -> str:
            unlock()  # nobody would ever be asked if the circle waited for it
            return says(0.9)

        config = circle(*VOICES, max_rounds=1)
        result = await fire_circle_evaluate(PROMPT, config, caller=answer, store=store)
        assert store.circles.load(result.circle_id) == result
    assert result.alarm
