"""Batches where few files may be open: slower, never lost."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import sys
from pathlib import Path

import pytest

from firecircle import FireCircleError, PromptGuard
from tests.loopback import Answer, ChatRequest, LoopbackServer, completion

resource = pytest.importorskip("resource", reason="this system has no limit of open files")

PROMPTS = 60
SETTINGS = """
[providers.own]
base_url = "{url}"
[providers.other]
base_url = "{other}"
"""


@pytest.mark.parametrize("limit", [40, 64, 256])
async def test_a_batch_is_judged_whole_with_few_open_files(limit: int, tmp_path: Path) -> None:
    rows = [{"user": f"Question {number}: as we agreed earlier"} for number in range(PROMPTS)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def answer(_: ChatRequest) -> Answer:
        return completion(latency=0.05)

    async with LoopbackServer(answer) as server, LoopbackServer(answer) as other:
        (tmp_path / "own.toml").write_text(SETTINGS.format(url=server.base_url, other=other.base_url))
        models = "own:a,own:b,other:c"
        options = ["--no-quorum", "--models", models, "--at-once", "60", "--out", "out.csv"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "firecircle", "evaluate", "--batch", "data.jsonl", *options),
            cwd=tmp_path,
            env={**os.environ, "FIRECIRCLE_CONFIG": str(tmp_path / "own.toml"), "HOME": str(tmp_path)},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
        )
        _, said = await process.communicate()
    assert process.returncode == 1, said.decode()
    with (tmp_path / "out.csv").open() as file:
        assert [row["verdict"] for row in csv.DictReader(file)] == ["alarm"] * PROMPTS
    # Nothing is paid twice: every voice is asked once in each of the two rounds.
    assert len(server.requests) + len(other.requests) == PROMPTS * 3 * 2, said.decode()


async def test_an_unexpected_error_is_one_prompts_own() -> None:
    class Bug(PromptGuard):
        async def evaluate_prompt(self, prompt, *arguments, **named):  # type: ignore[no-untyped-def]
            if "2" in str(prompt):
                raise ZeroDivisionError("a mistake")
            if "3" in str(prompt):
                raise OSError(24, "Too many open files", "a.txt")
            return await super().evaluate_prompt(prompt, *arguments, **named)

    judged = await Bug().evaluate_batch(["one", "2", "3", "four"])
    kinds = [isinstance(outcome, FireCircleError) for outcome in judged]
    assert kinds == [False, True, True, False]
    assert "this is a bug in firecircle: ZeroDivisionError: a mistake (tests.chaos" in str(judged[1])
    assert str(judged[2]) == "could not be judged: [Errno 24] Too many open files: 'a.txt'"
