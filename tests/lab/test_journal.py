"""What the journal writes down is read again, also when an earlier version wrote it."""

from __future__ import annotations

import random
import re
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from firecircle import Message, MultiNeutrosophicPrompt, Reply, StoreError, Turn, Usage, VoiceError
from firecircle.lab.arms.arm import Case
from firecircle.lab.datasets import Record
from firecircle.lab.runs.journal import CallPlace, FinishedCall, Journal, RecordRow, unpack_record
from firecircle.lab.runs.journaled_voices import call_key

PROMPT = MultiNeutrosophicPrompt(user="Go on, as we agreed ✓ earlier.")
CASE = Case(Record("r1", PROMPT, "attack", "family", "source", 3, None), "set", 1, 5)
TURN = Turn(
    (Message("system", "Judge."), Message("user", "“Go on”?")),
    PROMPT,
    round_number=2,
    max_tokens=300,
    temperature=0.2,
    seed=7,
    reply_schema={"type": "object", "properties": {"truth": {"type": "number"}}},
)
REPLY = Reply('{"falsehood": 0.8} ✓', "hm", Usage(100, 20, 30, 0.25), attempts=2, finished=True)

WRITTEN_BEFORE = (
    (
        "2D18B7D7E623B3E4C7C855E85E5C53ABA3DB64C9B302E67FF2F8627D3AE9713B",
        None,
        '{"seconds": 1.5, "attempts": 2, "message": "", "text": "{\\"falsehood\\": 0.8} \\u2713",'
        ' "reasoning_trace": "hm", "usage": [100, 20, 30, 0.25], "finished": true, "cached": false}',
    ),
    (
        "0A6BC4E692762DA0B35569A54F95A24ED883A25AEE763CE8D9E71A25D21AF6B6",
        "timeout",
        '{"seconds": 2.5, "attempts": 3, "message": "no answer"}',
    ),
)
"""Rows of a journal as version 0.1.0 wrote them: key, kind of failure, what was said."""


def test_rows_of_an_earlier_version_are_found_and_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    Journal(path).close()
    with closing(sqlite3.connect(path)) as file, file:
        for key, kind, said in WRITTEN_BEFORE:
            file.execute(
                "INSERT INTO calls VALUES (?, 'circle', 1, 'set', 'r1', 'vllm:m', 2, ?, 0, NULL, ?)",
                (bytes.fromhex(key), kind, said),
            )
    with Journal(path) as journal:
        answered = journal.find_call(call_key("circle", CASE, "vllm:m#2", TURN))
        failed = journal.find_call(call_key("circle", CASE, "vllm:n", TURN))
    assert answered == FinishedCall(REPLY, 1.5)
    assert failed == FinishedCall(None, 2.5, "timeout", "no answer", 3)
    with pytest.raises(VoiceError, match="no answer"):
        failed.replayed()


@pytest.mark.parametrize(
    "call",
    [
        FinishedCall(REPLY, 1.5),
        FinishedCall(Reply("", None, Usage(), cached=True, violation_probability=0.25), 0.0),
        FinishedCall(Reply("lone \ud800 half"), 0.1),
        FinishedCall(None, 2.5, "rate_limited", "later", 4),
    ],
)
async def test_a_call_comes_back_as_it_was_kept(tmp_path: Path, call: FinishedCall) -> None:
    key = call_key("circle", CASE, "vllm:m", TURN)
    with Journal(tmp_path / "journal.sqlite") as journal:
        await journal.write_call(key, CallPlace("circle", 1, "set", "r1", "vllm:m", 2), call)
        assert journal.find_call(key) == call


def test_another_question_has_another_key() -> None:
    key = call_key("circle", CASE, "vllm:m", TURN)
    for other in (TURN._replace(seed=8), TURN._replace(max_tokens=301), TURN._replace(round_number=3)):
        assert call_key("circle", CASE, "vllm:m", other) != key
    assert call_key("no_chair", CASE, "vllm:m", TURN) != key


async def test_a_journal_with_flipped_bits_is_told_in_one_line(tmp_path: Path) -> None:
    whole = tmp_path / "whole.sqlite"
    keys = [bytes([number]) * 32 for number in range(40)]
    with Journal(whole) as journal:
        for number, key in enumerate(keys):
            said = FinishedCall(Reply(f"answer {number} " * 40), 0.5)
            await journal.write_call(key, CallPlace("circle", 1, "set", f"r{number}", "vllm:m", 2), said)
        rows = [
            RecordRow(1, n, "circle", "judged", "attack", 0.5, True, 1, 1, None, 0, "set", f"r{n}", packed)
            for n, packed in enumerate([zlib.compress(b"{}" * 50)] * 40)
        ]
        await journal.write_records(rows)
    with sqlite3.connect(whole) as file:
        file.execute("PRAGMA journal_mode=DELETE")
    complaints = []
    for seed in range(40):
        dice = random.Random(seed)
        damaged = bytearray(whole.read_bytes())
        for _ in range(30):
            damaged[dice.randrange(100, len(damaged))] ^= 1 << dice.randrange(8)
        path = tmp_path / f"damaged{seed}.sqlite"
        path.write_bytes(damaged)
        try:
            with Journal(path) as journal:
                for key in keys:
                    journal.find_call(key)
                journal.spent()
                journal.tallies()
                list(journal.all_records(["circle"]))
        except StoreError as error:
            complaints.append(str(error))
    assert complaints
    for line in complaints:
        assert re.search(r": the journal (is damaged|cannot be used): [^\n]+\Z", line)


def test_a_record_that_cannot_be_unpacked_is_told_in_one_line() -> None:
    for packed in (b"junk", zlib.compress(b"{}"), zlib.compress(b"\xff")):
        with pytest.raises(StoreError, match="the journal is damaged: "):
            unpack_record(packed)
