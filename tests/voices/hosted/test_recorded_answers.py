"""Answers that real endpoints gave, byte for byte from a real server to the real voice.

`recorded_answers.jsonl` says what each of them means, worked out from the body by eye: where its words and
thoughts stand, what it took, how it ended or failed. The answers themselves lie beside the project and are not
part of it; what they look like is in `test_endpoints.py`, in bodies of our own.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from firecircle import Reply, VoiceError
from firecircle.circle.voice import Retry
from firecircle.errors import FAILURE_KINDS
from firecircle.voices.hosted.chat import forget_quirks
from firecircle.voices.hosted.providers import PROVIDERS
from firecircle.voices.hosted.voice import Backoff, HostedVoice
from tests.loopback import Answer, LoopbackServer
from tests.shared_data import shared
from tests.voices.hosted.test_hosted import SCHEMA, TURN

TABLE = Path(__file__).with_name("recorded_answers.jsonl")
EXPECTED: list[dict[str, Any]] = [json.loads(line) for line in TABLE.read_text().splitlines()]
NOT_REPEATED = ("content-length", "transfer-encoding", "connection", "content-type")
IMPATIENT = Backoff(first_seconds=0.001, longest_seconds=0.002, patience_seconds=0.5)


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    lines = shared("provider_answers.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


def recorded_answer(row: dict[str, Any]) -> Answer:
    """The answer as it was recorded, compressed if it was."""
    headers = {name.lower(): value for name, value in (row["headers"] or {}).items()}
    body = base64.b64decode(row["body_base64"]) if "body_base64" in row else row["body"].encode()
    if "body_base64" not in row:
        headers.pop("content-encoding", None)
    return Answer(
        body,
        row["status"],
        headers.get("content-type", ""),
        {name: value for name, value in headers.items() if name not in NOT_REPEATED},
    )


async def outcome_of(row: dict[str, Any]) -> tuple[Reply | VoiceError, list[Retry], int]:
    forget_quirks()
    retries: list[Retry] = []
    turn = TURN._replace(reply_schema=SCHEMA, seed=1, max_tokens=500, on_retry=retries.append)
    answer = recorded_answer(row)
    async with LoopbackServer(lambda _: answer) as server:
        where = PROVIDERS["openrouter"].at(server.base_url)
        voice = HostedVoice("own/none", where, "own/none", backoff=IMPATIENT)
        try:
            return await voice.speak(turn), retries, len(server.requests)
        except VoiceError as error:
            return error, retries, len(server.requests)


def at(path: str, body: Any) -> str:
    for step in path.split("."):
        body = body[int(step)] if step.isdecimal() else body[step]
    return str(body)


def streamed(body: str, *names: str) -> str:
    chunks = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]
    deltas = [chunk["choices"][0].get("delta") or {} for chunk in chunks if chunk.get("choices")]
    return "".join(delta.get(name) or "" for delta in deltas for name in names)


def readable(row: dict[str, Any]) -> str:
    if "body_base64" not in row:
        return str(row["body"])
    import gzip

    return gzip.decompress(base64.b64decode(row["body_base64"])).decode()


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected["id"])
async def test_an_answer_means_what_it_says(
    expected: dict[str, Any], rows: dict[str, dict[str, Any]]
) -> None:
    row = rows[expected["id"]]
    outcome, retries, requests = await outcome_of(row)
    usage = outcome.usage
    assert usage is not None
    times = expected.get("attempts", 1)
    assert (usage.tokens_in, usage.tokens_out, usage.tokens_cached) == tuple(
        None if (count := expected.get(name)) is None else count * times for name in ("in", "out", "cached")
    )
    assert usage.cost_usd == pytest.approx(expected["cost"]) if "cost" in expected else usage.cost_usd is None
    assert outcome.attempts == requests == times
    assert len(retries) == times - 1
    if "failed" in expected:
        assert isinstance(outcome, VoiceError)
        told = str(outcome)
        assert outcome.kind == expected["failed"]
        assert expected.get("advice", "") in told
        assert ("check the key" in told) == (expected.get("advice") == "check the key")
        assert ("check the name" in told) == (expected.get("advice") == "check the name")
        assert "status" not in expected or f"(HTTP {expected['status']})" in told or told.startswith("HTTP")
        if "wait" in expected:
            assert "; no time left for a retry in " in told
            assert 0 <= float(told.split("retry in ")[1].split()[0]) - expected["wait"] < 0.2
        return
    assert isinstance(outcome, Reply)
    body = readable(row)
    if expected.get("stream"):
        text, trace = streamed(body, "content"), streamed(body, "reasoning", "reasoning_content")
    else:
        said = json.loads(body)
        text = at(expected["text"], said) if expected["text"] else ""
        trace = at(expected["trace"], said) if "trace" in expected else ""
    assert outcome.text == text
    assert (outcome.reasoning_trace or "") == trace
    ends = {"finished": (True, False), "cut": (False, True), "other": (False, False)}
    assert (outcome.finished, outcome.cut_short) == ends[expected["end"]]


async def test_every_answer_ends_in_a_reply_or_in_one_line(rows: dict[str, dict[str, Any]]) -> None:
    for row in rows.values():
        outcome, _, _ = await outcome_of(row)
        if isinstance(outcome, Reply):
            assert 200 <= row["status"] < 300
            continue
        told = str(outcome)
        assert outcome.kind in FAILURE_KINDS
        assert told.strip()
        assert len(told) < 600
        assert "\n" not in told
        assert outcome.kind != "refused" or "check the key" not in told


async def test_the_table_speaks_of_every_answer(rows: dict[str, dict[str, Any]]) -> None:
    assert {expected["id"] for expected in EXPECTED} == set(rows)
