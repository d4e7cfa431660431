"""Runs whose questions are handed in to batch APIs, against a server that behaves like those of two vendors."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.cli.running import command
from tests.lab.hosting import arm
from tests.loopback import VERDICT

RECORDS, ROUNDS = 4, 2
KEY = "sk-canary-0123456789"


class BatchServer:
    """Answers questions directly and in batches, as OpenAI and Anthropic do; a batch ends when it is let."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.refuses = False
        self.expires = False
        self.direct: list[str] = []
        self.batches: dict[str, list[str]] = {}
        """The names of the questions in each batch."""
        self.seen_keys: set[str] = set()
        self._files: dict[str, list[dict[str, Any]]] = {}
        self.port = 0

    def routes(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/messages", self._message)
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{name}/content", self._content)
        app.router.add_post("/v1/batches", self._hand_in)
        app.router.add_get("/v1/batches/{name}", self._state)
        app.router.add_post("/v1/messages/batches", self._hand_in_messages)
        app.router.add_get("/v1/messages/batches/{name}", self._state_of_messages)
        app.router.add_get("/v1/messages/batches/{name}/results", self._results)
        return app

    async def _chat(self, request: web.Request) -> web.Response:
        self.seen_keys.add(request.headers["authorization"])
        self.direct.append((await request.json())["model"])
        return web.json_response(chat_answer())

    async def _message(self, request: web.Request) -> web.Response:
        self.seen_keys.add(request.headers["x-api-key"])
        self.direct.append((await request.json())["model"])
        return web.json_response(message_answer())

    async def _upload(self, request: web.Request) -> web.Response:
        if self.refuses:
            return web.json_response({"error": {"message": "no batches here"}}, status=403)
        form = await request.post()
        assert form["purpose"] == "batch"
        upload = form["file"]
        assert isinstance(upload, web.FileField)
        lines = [json.loads(line) for line in upload.file.read().decode().splitlines()]
        assert {line["url"] for line in lines} == {"/v1/chat/completions"}
        assert len({line["body"]["model"] for line in lines}) == 1
        self._files[f"file-{len(self._files)}"] = lines
        return web.json_response({"id": f"file-{len(self._files) - 1}", "object": "file"})

    async def _hand_in(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        assert wanted["completion_window"] == "24h"
        name = f"batch_{len(self.batches)}"
        self.batches[name] = [line["custom_id"] for line in self._files[wanted["input_file_id"]]]
        return web.json_response({"id": name, "status": "validating"})

    async def _state(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if not self.released.is_set():
            return web.json_response({"id": name, "status": "in_progress"})
        if self.expires:
            return web.json_response({"id": name, "status": "expired", "output_file_id": None})
        return web.json_response({"id": name, "status": "completed", "output_file_id": f"out-{name}"})

    async def _content(self, request: web.Request) -> web.Response:
        names = self.batches[request.match_info["name"].removeprefix("out-")]
        answer = {"status_code": 200, "body": chat_answer()}
        return web.Response(
            text="\n".join(json.dumps({"custom_id": name, "response": answer}) for name in names)
        )

    async def _hand_in_messages(self, request: web.Request) -> web.Response:
        assert request.headers["anthropic-version"]
        asked = (await request.json())["requests"]
        name = f"msgbatch_{len(self.batches)}"
        self.batches[name] = [entry["custom_id"] for entry in asked]
        assert all("max_tokens" in entry["params"] for entry in asked)
        return web.json_response({"id": name, "processing_status": "in_progress"})

    async def _state_of_messages(self, request: web.Request) -> web.Response:
        ended = self.released.is_set()
        thief = "http://127.0.0.1:9/steal"
        return web.json_response(
            {"processing_status": "ended" if ended else "in_progress", "results_url": thief}
        )

    async def _results(self, request: web.Request) -> web.Response:
        lines = [
            {"custom_id": name, "result": {"type": "succeeded", "message": message_answer()}}
            for name in self.batches[request.match_info["name"]]
        ]
        lines[0]["result"] = {"type": "errored", "error": {"type": "invalid_request"}}
        return web.Response(text="\n".join(map(json.dumps, lines)))

    @property
    def handed_in(self) -> list[str]:
        return [name for names in self.batches.values() for name in names]


USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


def chat_answer() -> dict[str, Any]:
    message = {"role": "assistant", "content": VERDICT}
    return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": USAGE}


def message_answer() -> dict[str, Any]:
    usage = {"input_tokens": 1000, "output_tokens": 100}
    said = [{"type": "text", "text": VERDICT}]
    return {"type": "message", "content": said, "stop_reason": "end_turn", "usage": usage}


@contextmanager
def serving() -> Iterator[BatchServer]:
    server, loop, ready = BatchServer(), asyncio.new_event_loop(), threading.Event()

    async def serve() -> web.AppRunner:
        runner = web.AppRunner(server.routes())
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.port = runner.addresses[0][1]
        return runner

    def run() -> None:
        runner = loop.run_until_complete(serve())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def plan_of(*models: str) -> str:
    return (
        'name = "batched"\n[concurrency]\nbatch = true\n[[datasets]]\npath = "examples"\n'
        f"sample = {RECORDS}\n[circle]\nmodels = {list(models)}\nmax_rounds = {ROUNDS}\nenforce_quorum = false\n"
        f"{arm('circle', 'fire_circle')}"
    )


Run = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(server: BatchServer, *models: str) -> subprocess.Popen[bytes]:
        plan = tmp_path / "plan.toml"
        plan.write_text(plan_of(*models))
        address = f"http://127.0.0.1:{server.port}/v1"
        keys = {f"{name}_API_KEY": KEY for name in ("OPENAI", "ANTHROPIC")}
        places = {f"FIRECIRCLE_{name}_BASE_URL": address for name in ("OPENAI", "ANTHROPIC")}
        started.append(
            subprocess.Popen(
                command("lab", "run", str(plan), "--out", str(tmp_path / "run"), "--json", "--no-save"),
                env={**os.environ, **keys, **places},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        )
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def finished(process: subprocess.Popen[bytes]) -> bytes:
    out, told = process.communicate(timeout=120)
    assert process.returncode == 0, (out + told).decode()
    return out


def wait_for(met: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not met() and time.monotonic() < until:
        time.sleep(0.05)
    assert met()


def test_a_round_is_a_batch(run: Run) -> None:
    with serving() as server:
        server.released.set()
        finished(run(server, "openai:gpt-5-mini", "anthropic:claude-haiku-4-5"))
        calls = RECORDS * ROUNDS
        of_openai = [name for batch, names in server.batches.items() if batch[0] == "b" for name in names]
        assert len(of_openai) == len(set(of_openai)) == calls - 1  # the first was asked directly
        assert server.direct.count("gpt-5-mini") == 1
        # One entry of every batch of Anthropic's fails and is asked directly.
        of_anthropic = [names for batch, names in server.batches.items() if batch[0] == "m"]
        assert sum(map(len, of_anthropic)) == calls - 1
        assert server.direct.count("claude-haiku-4-5") == 1 + len(of_anthropic)
        assert len(server.batches) <= 2 * ROUNDS + 2


def test_a_run_that_is_killed_waits_for_the_same_batch(run: Run) -> None:
    models = ("openai:gpt-5-mini", "openai:gpt-4.1")
    with serving() as server:
        process = run(server, *models)
        wait_for(lambda: len(server.handed_in) >= 2 * RECORDS - 2)
        time.sleep(0.5)  # the answer with the batch's name is on its way
        process.kill()
        process.communicate()
        server.released.set()
        finished(run(server, *models))
        assert len(server.handed_in) == len(set(server.handed_in)), "a question was handed in twice"
        # The new process learns again what each model wants, by one direct question of a later round.
        assert len(server.handed_in) + len(server.direct) == 2 * RECORDS * ROUNDS


@pytest.mark.parametrize("trouble", ["refuses", "expires"])
def test_what_a_batch_does_not_answer_is_asked_directly(run: Run, trouble: str) -> None:
    with serving() as server:
        server.released.set()
        setattr(server, trouble, True)
        finished(run(server, "openai:gpt-5-mini", "openai:gpt-4.1"))
        assert len(server.direct) == 2 * RECORDS * ROUNDS


def test_a_batch_costs_half_and_its_key_stays_at_home(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as server:
        server.released.set()
        settings = tmp_path / "prices.toml"
        prices = ("openai:gpt-5-mini", "openai:gpt-4.1")
        settings.write_text("".join(f'[prices."{name}"]\ninput = 1.0\noutput = 10.0\n' for name in prices))
        monkeypatch.setenv("FIRECIRCLE_CONFIG", str(settings))
        told = json.loads(finished(run(server, *prices)))
        assert server.seen_keys == {f"Bearer {KEY}"}
    calls = 2 * RECORDS * ROUNDS
    full = 1000 * 1e-6 + 100 * 10e-6
    assert told["spent"]["usd"] == pytest.approx(full * (2 + (calls - 2) / 2))
    assert KEY not in (tmp_path / "run" / "batches.jsonl").read_text()
