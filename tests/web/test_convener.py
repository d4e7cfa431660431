"""Circles convened from the page are known by the store's id as soon as the store has them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from firecircle.judge import Job, judge
from firecircle.store.opening import Store, open_store
from firecircle.store.recorder import Recording
from tests.cli.running import endpoint
from tests.loopback import completion
from tests.scripted import circle, says
from tests.web.serving import PROMPT, VOICES, Running, running

MODELS = ["anthropic/claude-sonnet-4", "qwen/qwen-2.5-72b-instruct", "deepseek/deepseek-r1"]


async def test_a_sitting_circle_has_its_id(store: Store) -> None:
    async def never(model: str, messages: list[dict[str, str]]) -> str:
        await asyncio.sleep(60)
        return says(0.5)

    recordings: list[Recording] = []
    job = Job(
        prompt=PROMPT, config=circle(*VOICES), caller=never, store=store, on_recording=recordings.append
    )
    judging = asyncio.create_task(judge(job))
    await asyncio.sleep(0)
    (recording,) = recordings
    name = await asyncio.wait_for(asyncio.wrap_future(recording.opened), 20)
    assert recording.id == name
    assert store.circles.summary(name).status == "sitting"
    judging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await judging
    assert store.circles.summary(name).status == "cancelled"


def test_circles_of_the_same_seed_are_told_apart(
    server: Running, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(lambda _: completion(says(0.5), latency=30.0)) as hosted:
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test-key")
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", hosted.base_url)
        asked = {"user": "hello there", "models": MODELS, "seed": 7}
        first, second = (client.post("/api/v1/evaluate", json=asked).json()["id"] for _ in range(2))
        assert first != second
        for name, other in ((second, first), (first, None)):
            assert client.post(f"/api/v1/circles/{name}/cancel").status_code == 202
            with client.stream("GET", f"/api/v1/circles/{name}/events") as told:
                assert "event: closed" in list(told.iter_lines())
            assert server.store.circles.summary(name).status == "cancelled"
            if other:
                assert server.store.circles.summary(other).status == "sitting"


@pytest.mark.parametrize("mode", ["fire_circle", "single"])
def test_what_cannot_be_kept_is_told_with_its_verdict(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], mode: str
) -> None:
    with open_store(tmp_path / "full.sqlite") as store, running(store) as server, server.client() as client:
        with store.database.writing() as connection:
            connection.execute(
                sa.text(
                    "CREATE TRIGGER full BEFORE INSERT ON circles BEGIN SELECT RAISE(ABORT, 'no room'); END"
                )
            )
        answer = client.post("/api/v1/evaluate", json={"user": "hello there", "mode": mode})
    assert answer.status_code == 503
    told = answer.json()
    assert "no room" in told["detail"]
    assert told["verdict"]["alarm"] is False
    assert f"F {told['verdict']['falsehood']:.3g} by {told['verdict']['decided_by']}" in told["detail"]
    assert "Warning" not in capfd.readouterr().err


def test_a_circle_whose_end_cannot_be_kept_is_one_line_on_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with open_store(tmp_path / "torn.sqlite") as store, running(store) as server, server.client() as client:
        with store.database.writing() as connection:
            connection.execute(sa.text("DROP TABLE participations"))
        answer = client.post("/api/v1/evaluate", json={"user": "hello there"})
        assert answer.status_code in (200, 202)
    told = capfd.readouterr().err
    assert told.startswith("warning: not saved: who took part")
    assert told.count("\n") == 1
