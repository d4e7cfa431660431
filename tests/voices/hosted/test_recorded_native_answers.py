"""Answers that real endpoints gave in their own formats, byte for byte from a real server to the real voice.

`recorded_native.jsonl` says what each of them means, worked out by a script of its own from the body: digests
of its words and thoughts, what it took, how it ended or failed. The answers lie beside the project and are not
part of it; what they look like is in `test_wires.py`, in bodies of our own.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from firecircle import Reply, VoiceError
from firecircle.voices.hosted.chat import forget_quirks
from firecircle.voices.hosted.providers import PROVIDERS, Provider
from firecircle.voices.hosted.voice import HostedVoice
from tests.loopback import LoopbackServer
from tests.shared_data import shared
from tests.voices.hosted.test_hosted import SCHEMA, TURN
from tests.voices.hosted.test_recorded_answers import IMPATIENT, recorded_answer

TABLE = Path(__file__).with_name("recorded_native.jsonl")
EXPECTED: list[dict[str, Any]] = [json.loads(line) for line in TABLE.read_text().splitlines()]
WIRES = {"anthropic": "messages", "responses": "responses", "gemini": "gemini"}


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    lines = shared("provider_answers_native.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


async def outcome_of(row: dict[str, Any]) -> Reply | VoiceError:
    forget_quirks()
    answer = recorded_answer(row)
    async with LoopbackServer(lambda _: answer) as server:
        preset = dict(PROVIDERS["openrouter"])
        where = Provider(**{**preset, "base_url": server.base_url, "wire": WIRES[row["format"]]})
        voice = HostedVoice("own/none", where, "own/none", backoff=IMPATIENT)
        try:
            return await voice.speak(TURN._replace(reply_schema=SCHEMA, seed=1, max_tokens=500))
        except VoiceError as error:
            return error


def digest(text: str | None) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected["id"])
async def test_a_native_answer_means_what_it_says(
    expected: dict[str, Any], rows: dict[str, dict[str, Any]]
) -> None:
    outcome = await outcome_of(rows[expected["id"]])
    usage = outcome.usage
    assert usage is not None
    counts = (usage.tokens_in, usage.tokens_out, usage.tokens_cached)
    if "failed" in expected:
        assert isinstance(outcome, VoiceError)
        assert outcome.kind == expected["failed"]
        known = tuple(
            None if (count := expected.get(name)) is None else count * outcome.attempts
            for name in ("in", "out", "cached")
        )
        assert counts == known
        told = str(outcome)
        assert "status" not in expected or f"(HTTP {expected['status']})" in told or "…" in told
        return
    assert isinstance(outcome, Reply)
    assert counts == tuple(expected.get(name) for name in ("in", "out", "cached"))
    assert usage.cost_usd == pytest.approx(expected["cost"]) if "cost" in expected else usage.cost_usd is None
    assert digest(outcome.text) == expected["text"]
    assert digest(outcome.reasoning_trace) == expected["trace"]
    ends = {"finished": (True, False), "cut": (False, True), "other": (False, False)}
    assert (outcome.finished, outcome.cut_short) == ends[expected["end"]]


def test_the_table_speaks_of_every_answer(rows: dict[str, dict[str, Any]]) -> None:
    assert {expected["id"] for expected in EXPECTED} == set(rows)
