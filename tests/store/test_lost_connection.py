"""PostgreSQL whose connections break while circles are held: nothing is lost, nothing is saved twice."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import pytest

from firecircle import FireCircleConfig, PromptGuard, ReciprocityMetrics
from firecircle.errors import NotKeptWarning
from firecircle.store.opening import Store, open_store
from tests.store.postgres import new_schema

PROMPTS = 24
REPLY = json.dumps(
    {"truth": 0.1, "indeterminacy": 0.1, "falsehood": 0.9, "verdict": "violation", "reasoning": "r"}
)


class Wire:
    """The way to the server, which may break and stay broken."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.is_down = False
        self.loses_commits = 0
        """So many times the server is told to commit, and its answer does not arrive."""
        self._open: set[asyncio.StreamWriter] = set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        inner, outer = await asyncio.open_connection("127.0.0.1", self._target)
        self._open |= {writer, outer}
        await asyncio.gather(self._copy(reader, outer), self._copy(inner, writer))

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                target.write(data)
                await target.drain()
                if self.loses_commits and b"COMMIT" in data:
                    self.loses_commits -= 1
                    self.cut()
        self._open.discard(target)
        target.transport.abort()

    def cut(self) -> None:
        for writer in [*self._open]:
            writer.transport.abort()


@asynccontextmanager
async def wire_to(server: str) -> AsyncIterator[tuple[Wire, int]]:
    wire = Wire(urlsplit(server).port or 0)
    listening = await asyncio.start_server(wire.carry, "127.0.0.1", 0)
    try:
        yield wire, listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        wire.cut()
        await listening.wait_closed()


async def answer(model: str, messages: object) -> str:
    await asyncio.sleep(0.15)
    return REPLY


async def judged(store: Store, asked: list[str]) -> list[ReciprocityMetrics]:
    async def caller(model: str, messages: object) -> str:
        asked.append(model)
        return await answer(model, messages)

    config = FireCircleConfig(models=("a/a", "b/b", "c/c"), enforce_quorum=False, max_rounds=2)
    guard = PromptGuard(store=store, caller=caller)
    try:
        prompts = [f"Prompt {number}" for number in range(PROMPTS)]
        outcomes = await guard.evaluate_batch(prompts, fire_circle_config=config, concurrency=3)
    finally:
        await asyncio.to_thread(store.close)
    return [outcome for outcome in outcomes if isinstance(outcome, ReciprocityMetrics)]


@pytest.mark.parametrize("seconds_down", [0.0, 1.0])
async def test_a_broken_connection_costs_nothing(seconds_down: float, postgresql_server: str) -> None:
    url = new_schema(postgresql_server, f"broken_{int(seconds_down)}")
    asked: list[str] = []
    async with wire_to(postgresql_server) as (wire, port):
        through = url.replace(f":{urlsplit(postgresql_server).port}/", f":{port}/")
        work = asyncio.create_task(judged(await asyncio.to_thread(open_store, through), asked))
        cuts = 0
        while not work.done():
            await asyncio.sleep(0.5)
            if seconds_down and cuts == 1:
                wire.is_down = True
            wire.cut()
            if wire.is_down:
                await asyncio.sleep(seconds_down)
                wire.is_down = False
            cuts += 1
        outcomes = await work
    assert cuts > 2
    assert len(outcomes) == PROMPTS
    assert len(asked) == PROMPTS * 3 * 2, "no voice is asked twice"
    with open_store(url) as store:
        kept = [circle for _, circle in store.circles.each()]
    assert sorted(circle.prompt.user for circle in kept) == sorted(f"Prompt {n}" for n in range(PROMPTS))


async def test_a_server_that_stays_away_costs_no_verdict(postgresql_server: str) -> None:
    url = new_schema(postgresql_server, "gone")
    async with wire_to(postgresql_server) as (wire, port):
        through = url.replace(f":{urlsplit(postgresql_server).port}/", f":{port}/")
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            work = asyncio.create_task(judged(await asyncio.to_thread(open_store, through), []))
            await asyncio.sleep(0.5)
            wire.is_down = True
            wire.cut()
            outcomes = await asyncio.wait_for(work, 60)
    assert len(outcomes) == PROMPTS
    assert any(issubclass(each.category, NotKeptWarning) for each in warned)


@pytest.mark.parametrize("times", [1, 2])
async def test_an_answer_lost_at_the_end_saves_nothing_twice(times: int, postgresql_server: str) -> None:
    url = new_schema(postgresql_server, f"twice_{times}")
    asked: list[str] = []
    async with wire_to(postgresql_server) as (wire, port):
        through = url.replace(f":{urlsplit(postgresql_server).port}/", f":{port}/")
        store = await asyncio.to_thread(open_store, through)
        wire.loses_commits = times
        outcomes = await judged(store, asked)
        assert wire.loses_commits == 0
    assert len(outcomes) == PROMPTS
    with open_store(url) as store:
        kept = [circle.prompt.user for _, circle in store.circles.each()]
    assert sorted(kept) == sorted(f"Prompt {n}" for n in range(PROMPTS))
