"""What the journal writes down is read again, also when an earlier version wrote it."""

from __future__ import annotations

import asyncio
import random
import re
import sqlite3
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from firecircle import Message, MultiNeutrosophicPrompt, Reply, StoreError, Turn, Usage, VoiceError
from firecircle.engine.journal import CallPlace, FinishedCall, JudgementKey, RecordRow
from firecircle.lab.arms.arm import Case
from firecircle.lab.datasets import Record
from firecircle.lab.records import RunJournal as Journal
from firecircle.lab.records import unpack_record

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


ONE_LINE = r": the journal (is damaged|cannot be used): [^\n]+\Z"
TABLES_BEFORE = """
CREATE TABLE calls (
    key BLOB PRIMARY KEY, arm TEXT NOT NULL, repeat INTEGER NOT NULL, dataset TEXT NOT NULL,
    record_id TEXT NOT NULL, voice TEXT NOT NULL, round INTEGER NOT NULL,
    failed TEXT, tokens INTEGER, cost_usd REAL, said TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE records (
    repeat INTEGER NOT NULL, place INTEGER NOT NULL, arm TEXT NOT NULL,
    status TEXT NOT NULL, label TEXT, f REAL, alarm INTEGER, calls INTEGER NOT NULL,
    tokens INTEGER NOT NULL, cost_usd REAL, voices_lost INTEGER NOT NULL,
    dataset TEXT NOT NULL, record_id TEXT NOT NULL, record BLOB NOT NULL,
    PRIMARY KEY (repeat, place, arm)
) WITHOUT ROWID;
"""
"""Its tables, without checksums."""


def earlier_journal(folder: Path) -> Path:
    path = folder / "journal.sqlite"
    with closing(sqlite3.connect(path)) as file, file:
        file.executescript(TABLES_BEFORE)
        for key, kind, said in WRITTEN_BEFORE:
            file.execute(
                "INSERT INTO calls VALUES (?, 'circle', 1, 'set', 'r1', 'vllm:m', 2, ?, 0, NULL, ?)",
                (bytes.fromhex(key), kind, said),
            )
    return path


async def written_journal(path: Path, rows: int) -> list[bytes]:
    """A journal of so many calls and records, in one file; the keys of its calls."""
    keys = [bytes([number]) * 32 for number in range(rows)]
    with Journal(path) as journal:
        for number, key in enumerate(keys):
            said = FinishedCall(Reply(f"answer {number} " * 40, usage=Usage(10, cost_usd=1)), 0.5)
            await journal.write_call(
                key, CallPlace(JudgementKey("circle", 1, "set", f"r{number}"), "vllm:m", 2), said
            )
        packed = zlib.compress(b"{}" * 50)
        await journal.write_records(
            [
                RecordRow(
                    1, n, "circle", "judged", "attack", 0.5, True, 1, 1, None, 0, "set", f"r{n}", packed
                )
                for n in range(rows)
            ]
        )
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode=DELETE")
    return keys


def test_rows_of_an_earlier_version_are_found_and_read(tmp_path: Path) -> None:
    path = earlier_journal(tmp_path)
    with Journal(path) as journal:
        answered = journal.find_call(CASE.key("circle").call_key("vllm:m#2", TURN))
        failed = journal.find_call(CASE.key("circle").call_key("vllm:n", TURN))
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
    key = CASE.key("circle").call_key("vllm:m", TURN)
    with Journal(tmp_path / "journal.sqlite") as journal:
        await journal.write_call(key, CallPlace(JudgementKey("circle", 1, "set", "r1"), "vllm:m", 2), call)
        assert journal.find_call(key) == call


def test_another_question_has_another_key() -> None:
    key = CASE.key("circle").call_key("vllm:m", TURN)
    for other in (TURN._replace(seed=8), TURN._replace(max_tokens=301), TURN._replace(round_number=3)):
        assert CASE.key("circle").call_key("vllm:m", other) != key
    assert CASE.key("no_chair").call_key("vllm:m", TURN) != key


async def test_a_journal_with_flipped_bits_is_told_in_one_line(tmp_path: Path) -> None:
    whole = tmp_path / "whole.sqlite"
    keys = await written_journal(whole, 40)
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
        assert re.search(ONE_LINE, line)


async def test_no_single_flipped_bit_goes_unnoticed(tmp_path: Path, is_long: bool) -> None:
    """Whatever bit of the file is flipped: one line says so, or every row is as it was."""
    whole, damaged = tmp_path / "whole.sqlite", tmp_path / "damaged.sqlite"
    await written_journal(whole, 12)
    with Journal(whole) as journal:
        written = journal.verified()
    assert written[:2] == (12, 12)
    rows = everything_in(whole)
    content = whole.read_bytes()
    dice = random.Random(3)
    noticed = []
    for _ in range(5000 if is_long else 250):
        flipped = bytearray(content)
        flipped[dice.randrange(len(flipped))] ^= 1 << dice.randrange(8)
        damaged.write_bytes(flipped)
        try:
            with Journal(damaged) as journal:
                assert journal.verified(written) == written
            assert everything_in(damaged) == rows
        except StoreError as error:
            noticed.append(str(error))
    assert noticed
    for line in noticed:
        assert re.search(ONE_LINE, line)


def everything_in(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as file:
        return [row for table in ("calls", "records") for row in file.execute(f"SELECT * FROM {table}")]


async def test_rows_that_are_gone_are_told(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    await written_journal(path, 3)
    with Journal(path) as journal:
        written = journal.verified()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM records WHERE place = 1")
    with Journal(path) as journal:
        assert journal.verified().records == 2
        with pytest.raises(StoreError, match="holds 3 calls and 2 records, and not what it held"):
            journal.verified(written)


async def test_an_earlier_journal_is_added_to_and_then_checked_as_far_as_it_can_be(tmp_path: Path) -> None:
    path = earlier_journal(tmp_path)
    with Journal(path) as journal:
        assert journal.verified()[:2] == (2, 0)
        await journal.write_call(
            b"new", CallPlace(JudgementKey("circle", 1, "set", "r9"), "vllm:m", 2), FinishedCall(REPLY, 1)
        )
    with Journal(path) as journal:
        written = journal.verified()
        assert written.calls == 3
        assert journal.find_call(b"new") == FinishedCall(REPLY, 1)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE calls SET said = replace(said, '0.8', '0.1') WHERE record_id = 'r9'")
    with (
        Journal(path) as journal,
        pytest.raises(
            StoreError, match="the call of 'vllm:m' about record 'r9' under arm 'circle' is not as"
        ),
    ):
        journal.verified()


def test_a_record_that_cannot_be_unpacked_is_told_in_one_line() -> None:
    for packed in (b"junk", zlib.compress(b"{}"), zlib.compress(b"\xff")):
        with pytest.raises(StoreError, match="the journal is damaged: "):
            unpack_record(packed)


async def test_a_disk_that_was_full_for_a_moment_costs_no_paid_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, failures = Journal._commit, iter((sqlite3.OperationalError("disk is full"), MemoryError()))

    def failing_twice(self: Journal, *args: Any) -> None:
        if (trouble := next(failures, None)) is not None:
            raise trouble
        commit(self, *args)

    monkeypatch.setattr(Journal, "_commit", failing_twice)
    place = CallPlace(JudgementKey("circle", 1, "set", "r1"), "vllm:m", 2)
    with Journal(tmp_path / "journal.sqlite") as journal:
        await journal.write_call(b"key", place, FinishedCall(REPLY, 1.0))
        assert journal.find_call(b"key") is not None
        assert journal.broken is None


def test_a_caller_that_has_gone_does_not_end_the_journal(tmp_path: Path) -> None:
    place = CallPlace(JudgementKey("circle", 1, "set", "r1"), "vllm:m", 2)

    async def cancelled_while_the_file_is_locked(journal: Journal) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(journal.write_call(b"first", place, FinishedCall(REPLY, 1.0)), 0.05)

    with Journal(tmp_path / "journal.sqlite") as journal:
        with closing(sqlite3.connect(journal.path, isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            asyncio.run(cancelled_while_the_file_is_locked(journal))
            file.execute("COMMIT")
        asyncio.run(journal.write_call(b"second", place, FinishedCall(REPLY, 1.0)))
        assert journal.find_call(b"first") == journal.find_call(b"second") == FinishedCall(REPLY, 1.0)


async def test_a_journal_that_cannot_be_read_stops_the_run_and_still_takes_paid_calls(tmp_path: Path) -> None:
    place = CallPlace(JudgementKey("circle", 1, "set", "r1"), "vllm:m", 2)
    with Journal(tmp_path / "journal.sqlite") as journal:
        await journal.write_call(b"first", place, FinishedCall(REPLY, 1.0))
        with closing(sqlite3.connect(journal.path, isolation_level=None)) as file:
            file.execute("UPDATE calls SET said = 'no JSON'")
        with pytest.raises(StoreError, match="damaged"):
            journal.find_call(b"first")
        assert journal.broken is not None
        await journal.write_call(b"second", place, FinishedCall(REPLY, 1.0))
        assert journal.find_call(b"second") is not None
