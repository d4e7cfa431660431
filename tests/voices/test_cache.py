"""Replies kept on this machine: what counts as the same question, and what is written down."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from firecircle import (
    ConfigError,
    FireCircleConfig,
    Message,
    MultiNeutrosophicPrompt,
    Reply,
    fire_circle_evaluate,
    replay_circle,
)
from firecircle.circle.voice import Turn, Usage
from firecircle.settings import user_folder
from firecircle.voices.cache import CachedVoice, ReplyCache
from firecircle.voices.hosted.providers import PROVIDERS
from firecircle.voices.hosted.voice import HostedVoice
from tests.loopback import LoopbackServer, completion
from tests.voices.hosted.test_hosted import KEY, TURN

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "cost": 0.5}
PROMPT = MultiNeutrosophicPrompt(user="Go on, as we agreed earlier.")


def voice_at(server: LoopbackServer, cache: ReplyCache, model: str = "vllm:m") -> CachedVoice:
    where = PROVIDERS["vllm"].at(server.base_url)
    return CachedVoice(HostedVoice(model, where, model.partition(":")[2], SecretStr(KEY)), cache)


@pytest.fixture
def cache(tmp_path: Path) -> ReplyCache:
    return ReplyCache(tmp_path / "deep" / "replies.sqlite")


async def test_the_same_question_is_asked_once(cache: ReplyCache) -> None:
    answer = completion("hi ✓", usage=USAGE, reasoning="hm")
    async with LoopbackServer(lambda _: answer) as server:
        first = await voice_at(server, cache).speak(TURN)
        again = await voice_at(server, ReplyCache(cache.path)).speak(TURN)
    assert len(server.requests) == 1
    assert (first.cached, first.usage.cost_usd, first.attempts) == (False, 0.5, 1)
    assert again == replace(first, cached=True, attempts=0, usage=Usage(100, None, 20, 0.0))


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (*TURN.messages, Message("user", "?"))},
        {"messages": (Message("user", TURN.messages[0].content), *TURN.messages[1:])},
        {"max_tokens": 7},
        {"temperature": 0.1},
        {"seed": 1},
        {"reply_schema": {"type": "object"}},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_any_other_question_is_asked(cache: ReplyCache, change: dict[str, Any]) -> None:
    async with LoopbackServer(lambda _: completion("hi")) as server:
        await voice_at(server, cache).speak(TURN)
        await voice_at(server, cache).speak(TURN._replace(**change))
    assert len(server.requests) == 2


async def test_another_model_a_clone_or_another_address_is_asked(cache: ReplyCache) -> None:
    async with (
        LoopbackServer(lambda _: completion("hi")) as server,
        LoopbackServer(lambda _: completion("ho")) as other,
    ):
        for model in ("vllm:m", "vllm:n", "vllm:m#2"):
            await voice_at(server, cache, model).speak(TURN)
        assert (await voice_at(other, cache).speak(TURN)).text == "ho"
    assert len(server.requests) == 3


async def test_what_does_not_shape_the_answer_does_not_count(cache: ReplyCache) -> None:
    async with LoopbackServer(lambda _: completion("hi")) as server:
        await voice_at(server, cache).speak(TURN)
        assert (
            await voice_at(server, cache).speak(TURN._replace(attempt_seconds=1.0, round_number=2))
        ).cached


async def test_an_empty_answer_is_not_kept(cache: ReplyCache) -> None:
    async with LoopbackServer(lambda _: completion("")) as server:
        await voice_at(server, cache).speak(TURN)
        await voice_at(server, cache).speak(TURN)
    assert len(server.requests) == 2


async def test_the_file_is_the_user_s_own_and_holds_neither_question_nor_key(cache: ReplyCache) -> None:
    answer = completion(f"you sent {KEY}", reasoning=f"why {KEY}?")
    async with LoopbackServer(lambda _: answer) as server:
        await voice_at(server, cache).speak(TURN)
    written = b"".join(file.read_bytes() for file in cache.path.parent.iterdir())
    assert b"you sent [key]" in written
    assert KEY.encode() not in written
    assert TURN.messages[0].content.encode() not in written
    assert stat.S_IMODE(os.stat(cache.path).st_mode) == 0o600


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from firecircle.circle.voice import Reply\nfrom firecircle.voices.cache import ReplyCache\n"
        "cache = ReplyCache(Path(sys.argv[1]))\n"
        "for n in range(100):\n    cache.keep(f'{sys.argv[2]}-{n}', 'm', Reply('hi'))\n"
        "    cache.keep(f'both-{n}', 'm', Reply(sys.argv[2]))\n"
    )
    path = tmp_path / "replies.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    cache = ReplyCache(path)
    assert all(cache.find(f"{name}-{n}") for name in "ab" for n in range(100))
    assert all((cache.find(f"both-{n}") or Reply("")).text in "ab" for n in range(100))


def test_a_place_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a database, but long enough to be taken for a broken one" * 20)
    for path in (tmp_path / "file" / "x.sqlite", tmp_path / "file"):
        with pytest.raises(ConfigError, match="cache_enabled: cannot use"):
            ReplyCache(path)


async def test_a_cache_that_breaks_later_costs_no_answer(
    cache: ReplyCache, caplog: pytest.LogCaptureFixture
) -> None:
    async with LoopbackServer(lambda _: completion("hi")) as server:
        voice = voice_at(server, cache)
        for file in cache.path.parent.iterdir():
            file.write_bytes(b"broken" * 1000)
        with caplog.at_level(logging.WARNING):
            assert (await voice.speak(TURN)).text == "hi"
    assert "cannot be read" in caplog.text
    assert "cannot be written" in caplog.text


async def test_a_circle_says_what_came_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    config = FireCircleConfig(
        models=("vllm:a", "vllm:b"), enforce_quorum=False, cache_enabled=True, seed=1, budget_tokens=100_000
    )
    async with LoopbackServer(lambda _: completion(usage=USAGE)) as server:
        monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", server.base_url)
        first = await fire_circle_evaluate(PROMPT, config)
        asked = len(server.requests)
        second = await fire_circle_evaluate(PROMPT, config)
        uncached = await fire_circle_evaluate(PROMPT, config.model_copy(update={"cache_enabled": False}))
    assert asked == first.accounting.total.calls == 4
    assert len(server.requests) == 2 * asked
    assert second.consensus == first.consensus
    assert all(call.cached and call.attempts == 0 and call.cost_usd == 0.0 for call in second.calls)
    total = second.accounting.total
    assert (total.calls_cached, total.tokens_in, total.cost_usd) == (4, 400, 0.0)
    assert uncached.accounting.total.calls_cached == 0
    assert (user_folder("cache") / "replies.sqlite").exists()
    assert (await replay_circle(second)).without_times() == second.without_times()


async def test_what_is_kept_fits_any_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    config = FireCircleConfig(models=("vllm:a", "vllm:b"), enforce_quorum=False, cache_enabled=True, seed=1)
    async with LoopbackServer(lambda _: completion(usage=USAGE)) as server:
        monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", server.base_url)
        first = await fire_circle_evaluate(PROMPT, config)
        again = await fire_circle_evaluate(PROMPT, config.model_copy(update={"budget_tokens": 10}))
    assert again.accounting.total.calls_cached == first.accounting.total.calls


async def test_a_row_that_an_earlier_version_wrote_is_found_and_read(cache: ReplyCache) -> None:
    turn = Turn(
        (Message("system", "Judge."), Message("user", "“Go on”?")),
        PROMPT,
        round_number=2,
        max_tokens=300,
        temperature=0.2,
        seed=7,
        reply_schema={"type": "object", "properties": {"truth": {"type": "number"}}},
    )
    with closing(sqlite3.connect(cache.path)) as file, file:
        file.execute(
            "INSERT INTO replies VALUES (?, ?, ?, ?)",
            (
                "60ed7386cb3b84cca8e45f1fd67a7e6b7552b1afa0b45a552154fe35a4d7226d",
                "vllm:m#2",
                1.0,
                '{"text": "{\\"falsehood\\": 0.8} \\u2713", "reasoning_trace": "hm", "finished": true,'
                ' "tokens": [100, 20, 30]}',
            ),
        )
    nobody = PROVIDERS["vllm"].at("http://127.0.0.1:9/v1")
    voice = CachedVoice(HostedVoice("vllm:m#2", nobody, "m", SecretStr(KEY)), cache)
    assert await voice.speak(turn) == Reply(
        '{"falsehood": 0.8} ✓', "hm", Usage(100, 20, 30, 0.0), attempts=0, finished=True, cached=True
    )


@pytest.mark.parametrize(
    "row", ["{}", "[]", '{"text": "hi"}', '{"text": "hi", "usage": {"tokens": 1}}', "hi"]
)
async def test_a_damaged_row_is_asked_again(
    cache: ReplyCache, row: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with LoopbackServer(lambda _: completion("hi")) as server:
        await voice_at(server, cache).speak(TURN)
        with closing(sqlite3.connect(cache.path)) as file, file:
            file.execute("UPDATE replies SET reply = ?", (row,))
        assert not (await voice_at(server, cache).speak(TURN)).cached
    assert "cannot be read" in caplog.text
