"""Batch APIs of OpenAI and Anthropic: half the price for questions that may wait a day.

Questions are collected for a moment and submitted together. Every batch is recorded before waiting for it, so
that a killed run waits for the same batch and pays once. A question without an answer in its batch is asked
directly.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from firecircle.voices.hosted.connections import HttpAnswer, open_session
from firecircle.voices.hosted.waits import Setback

if TYPE_CHECKING:
    from pathlib import Path

    from firecircle.circle.voice import Reply, Turn
    from firecircle.voices.hosted.voice import HostedVoice

_log = logging.getLogger(__name__)
MOST_QUESTIONS = 10_000
MOST_BYTES = 100_000_000
"""The limit of both vendors for a batch."""
QUIET_SECONDS = 1.0
"""A batch is submitted when no question has come for this long."""
FIRST_LOOK, LONGEST_LOOK = 1.0, 60.0
"""Seconds between two checks of a batch; each pause is half as long again."""
SECONDS_TO_ANSWER = 300.0
AN_ID = re.compile(r"[\w-]{1,200}", re.ASCII)


class NotTaken(Exception):  # noqa: N818 - an outcome, handled where questions are asked directly
    """The endpoint rejected a batch or does not know it."""


@dataclass(slots=True)
class _Question:
    id: str
    voice: HostedVoice
    body: dict[str, Any]
    answer: asyncio.Future[HttpAnswer | None]


@dataclass(slots=True)
class BatchDesk:
    """Collects questions, submits them together and returns the answer of each."""

    record: Path
    """The record of submitted batches, one JSON line each."""
    quiet_seconds: float = QUIET_SECONDS
    first_look: float = FIRST_LOOK
    _queues: dict[str, list[_Question]] = field(default_factory=dict)
    _first: dict[str, asyncio.Lock] = field(default_factory=dict)
    _tried: set[str] = field(default_factory=set)
    _handed_in: dict[str, str] = field(default_factory=dict)
    """The batch of every recorded question."""
    _waiting: dict[str, dict[str, asyncio.Future[HttpAnswer | None]]] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        for line in self._lines():
            self._handed_in |= dict.fromkeys(line["ids"], line["batch"])

    def _lines(self) -> Iterator[Mapping[str, Any]]:
        try:
            lines = self.record.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                continue  # the last line, cut when the run was killed

    async def ask(self, question: str, voice: HostedVoice, turn: Turn) -> Reply:
        """The answer to a question by this name; asks directly if its batch has none."""
        if question not in self._handed_in and (direct := await self._ask_first(voice, turn)):
            return direct
        answer = await self._ask_in_batch(question, voice, turn)
        if answer is not None:
            try:
                return voice.heard(answer, 0.5)  # half the price
            except Setback as setback:
                _log.info("a batch did not answer %s: %s", voice.model, setback.message)
        return await voice.speak(turn)

    async def _ask_first(self, voice: HostedVoice, turn: Turn) -> Reply | None:
        """Ask the first question to a model directly, which finds out what the model needs."""
        async with self._first.setdefault(voice.model, asyncio.Lock()):
            if voice.model in self._tried:
                return None
            self._tried.add(voice.model)
            return await voice.speak(turn)

    async def _ask_in_batch(self, question: str, voice: HostedVoice, turn: Turn) -> HttpAnswer | None:
        future: asyncio.Future[HttpAnswer | None] = asyncio.get_running_loop().create_future()
        if batch := self._handed_in.get(question):
            waiting = self._waiting.get(batch)
            if waiting is None:
                waiting = self._waiting[batch] = {}
                self._begin(self._follow(batch, voice))
            waiting[question] = future
            return await future
        request = voice.request(turn)
        asked = _Question(question, voice, request.wire.spelled(request.fields()), future)
        queue = self._queues.setdefault(voice.model, [])
        queue.append(asked)
        if len(queue) == 1:
            self._begin(self._hand_in_when_quiet(voice.model))
        return await future

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _hand_in_when_quiet(self, model: str) -> None:
        gathered = 0
        while gathered < len(self._queues[model]) < MOST_QUESTIONS:
            gathered = len(self._queues[model])
            await asyncio.sleep(self.quiet_seconds)
        questions = self._queues.pop(model)
        for some in _in_portions(questions):
            voice = some[0].voice
            try:
                batch = await _api_of(voice).hand_in(some)
            except (NotTaken, OSError, TimeoutError) as trouble:
                _log.warning("%s took no batch: %s; asking directly", voice.provider.name, trouble)
                _answer_all({asked.id: asked.answer for asked in some}, {})
                continue
            self._note(batch, [asked.id for asked in some])
            self._waiting[batch] = {asked.id: asked.answer for asked in some}
            self._begin(self._follow(batch, voice))

    def _note(self, batch: str, ids: list[str]) -> None:
        self._handed_in |= dict.fromkeys(ids, batch)
        with self.record.open("a", encoding="utf-8") as record:
            record.write(json.dumps({"batch": batch, "ids": ids}) + "\n")
            record.flush()
            os.fsync(record.fileno())

    async def _follow(self, batch: str, voice: HostedVoice) -> None:
        """Check a batch until it has ended, and distribute its answers."""
        api, wait = _api_of(voice), self.first_look
        answers: dict[str, HttpAnswer] = {}
        while True:
            try:
                if await api.has_ended(batch):
                    answers = {question: answer async for question, answer in api.answers(batch)}
                    break
            except NotTaken as gone:
                _log.warning("batch %s: %s; asking directly", batch, gone)
                break
            except (OSError, TimeoutError) as trouble:
                _log.info("batch %s cannot be looked at now: %s", batch, trouble)
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, LONGEST_LOOK)
        _answer_all(self._waiting.pop(batch, {}), answers)


def _answer_all(
    waiting: Mapping[str, asyncio.Future[HttpAnswer | None]], answers: Mapping[str, HttpAnswer]
) -> None:
    for question, future in waiting.items():
        if not future.done():
            future.set_result(answers.get(question))


def _in_portions(questions: list[_Question]) -> Iterator[list[_Question]]:
    portion: list[_Question] = []
    size = 0
    for asked in questions:
        length = len(json.dumps(asked.body))
        if portion and (len(portion) >= MOST_QUESTIONS or size + length > MOST_BYTES):
            yield portion
            portion, size = [], 0
        portion.append(asked)
        size += length
    if portion:
        yield portion


class _Api:
    """Requests to one provider's batch API, only at its own address."""

    def __init__(self, voice: HostedVoice) -> None:
        self.provider = voice.provider
        self.headers = {**voice.shown_headers, "accept": "application/json"}
        self.headers.pop("content-type", None)

    async def hand_in(self, questions: list[_Question]) -> str:
        """Submit a batch; returns its id."""
        raise NotImplementedError

    async def has_ended(self, batch: str) -> bool:
        """Whether the batch is finished."""
        raise NotImplementedError

    def answers(self, batch: str) -> AsyncIterator[tuple[str, HttpAnswer]]:
        """The result of each answered question."""
        raise NotImplementedError

    async def send(self, method: str, path: str, **content: Any) -> bytes:
        """The body of an answer; raises `NotTaken` for a complaint, `OSError` for what may pass."""
        import aiohttp

        url = self.provider.auth.with_query(f"{self.provider.base_url}{path}")
        try:
            async with (
                asyncio.timeout(SECONDS_TO_ANSWER),
                open_session(url) as session,
                session.request(
                    method, url, headers=self.headers, allow_redirects=False, **content
                ) as response,
            ):
                body = await response.read()
        except aiohttp.ClientError as lost:
            raise OSError(str(lost) or type(lost).__name__) from None
        if response.status == 429 or response.status >= 500:
            raise OSError(f"HTTP {response.status}")
        if not 200 <= response.status < 300:
            raise NotTaken(f"HTTP {response.status}")
        return body

    async def told(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        """As `send`, parsed as a JSON object."""
        try:
            told = json.loads(await self.send(method, path, **content))
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise NotTaken("its answer is not a JSON object")
        return told

    async def lines(self, path: str) -> list[dict[str, Any]]:
        """The JSON objects of a file of lines."""
        found = []
        for line in (await self.send("GET", path)).decode("utf-8", "replace").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and isinstance(entry.get("custom_id"), str):
                found.append(entry)
        return found


class _OpenAI(_Api):
    async def hand_in(self, questions: list[_Question]) -> str:
        import aiohttp

        path = questions[0].voice.request_path
        lines = [
            json.dumps({"custom_id": asked.id, "method": "POST", "url": path, "body": asked.body})
            for asked in questions
        ]
        form = aiohttp.FormData({"purpose": "batch"})
        form.add_field("file", "\n".join(lines), filename="questions.jsonl", content_type="application/jsonl")
        file = _id_in(await self.told("POST", "/files", data=form), "id")
        wanted = {"input_file_id": file, "endpoint": path, "completion_window": "24h"}
        return _id_in(await self.told("POST", "/batches", json=wanted), "id")

    async def has_ended(self, batch: str) -> bool:
        state = (await self.told("GET", f"/batches/{batch}")).get("status")
        return state in ("completed", "failed", "expired", "cancelled")

    async def answers(self, batch: str) -> AsyncIterator[tuple[str, HttpAnswer]]:
        told = await self.told("GET", f"/batches/{batch}")
        for name in ("output_file_id", "error_file_id"):
            if not told.get(name):
                continue
            for entry in await self.lines(f"/files/{_id_in(told, name)}/content"):
                response = entry.get("response")
                if isinstance(response, dict) and isinstance(response.get("status_code"), int):
                    body = json.dumps(response.get("body")).encode()
                    yield entry["custom_id"], HttpAnswer(response["status_code"], {}, body)


class _Anthropic(_Api):
    async def hand_in(self, questions: list[_Question]) -> str:
        wanted = {"requests": [{"custom_id": asked.id, "params": asked.body} for asked in questions]}
        return _id_in(await self.told("POST", "/messages/batches", json=wanted), "id")

    async def has_ended(self, batch: str) -> bool:
        return (await self.told("GET", f"/messages/batches/{batch}")).get("processing_status") == "ended"

    async def answers(self, batch: str) -> AsyncIterator[tuple[str, HttpAnswer]]:
        # Not at the answer's `results_url`: the key is sent only to the provider's address.
        for entry in await self.lines(f"/messages/batches/{batch}/results"):
            result = entry.get("result")
            if isinstance(result, dict) and result.get("type") == "succeeded":
                yield entry["custom_id"], HttpAnswer(200, {}, json.dumps(result.get("message")).encode())


def _id_in(told: Mapping[str, Any], name: str) -> str:
    value = told.get(name)
    if not isinstance(value, str) or not AN_ID.fullmatch(value):
        raise NotTaken(f"its answer has no {name}")
    return value


def can_batch(voice: HostedVoice) -> bool:
    """Whether a voice's questions can be submitted in a batch."""
    return voice.provider.batches is not None


def _api_of(voice: HostedVoice) -> _Api:
    return _Anthropic(voice) if voice.provider.batches == "anthropic" else _OpenAI(voice)
