"""Circles convened from the page are known by the store's id as soon as the store has them."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from firecircle import fire_circle_evaluate
from firecircle.convene import kept_in
from firecircle.errors import CircleCancelled
from firecircle.store.opening import Store
from tests.cli.running import endpoint
from tests.loopback import completion
from tests.scripted import circle, says
from tests.web.serving import PROMPT, VOICES, Running

MODELS = ["anthropic/claude-sonnet-4", "qwen/qwen-2.5-72b-instruct", "deepseek/deepseek-r1"]


async def test_a_sitting_circle_has_its_id(store: Store) -> None:
    async def never(model: str, messages: list[dict[str, str]]) -> str:
        await asyncio.sleep(60)
        return says(0.5)

    async with kept_in(store) as recording:
        assert recording is not None
        judging = asyncio.create_task(
            fire_circle_evaluate(PROMPT, circle(*VOICES), caller=never, on_event=recording.tell)
        )
        name = await asyncio.wait_for(asyncio.wrap_future(recording.opened), 20)
        assert recording.id == name
        assert store.circles.summary(name).status == "sitting"
        judging.cancel()
        with pytest.raises(CircleCancelled):
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
