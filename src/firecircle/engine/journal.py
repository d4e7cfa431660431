"""The journal of a run or batch: every finished paid call and every judged record, on disk before it is used.

One SQLite file in WAL mode, only ever added to. A thread of its own writes; whatever comes in while it is
waiting for the disk goes into the next commit together, so that a thousand calls do not wait one by one.
Every row carries a checksum, since SQLite notices damage to its own structure only; `verified` looks at all.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import queue
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from firecircle.circle.voice import Reply, Turn, Usage
from firecircle.errors import ConfigError, FailureKind, StoreError, VoiceError

SECONDS_TO_WAIT = 30.0
MOST_AT_ONCE = 500
LONGEST_REASON = 200

_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    key BLOB PRIMARY KEY, arm TEXT NOT NULL, repeat INTEGER NOT NULL, dataset TEXT NOT NULL,
    record_id TEXT NOT NULL, voice TEXT NOT NULL, round INTEGER NOT NULL,
    failed TEXT, tokens INTEGER, cost_usd REAL, said TEXT NOT NULL, checksum INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
    repeat INTEGER NOT NULL, place INTEGER NOT NULL, arm TEXT NOT NULL,
    status TEXT NOT NULL, label TEXT, f REAL, alarm INTEGER, calls INTEGER NOT NULL,
    tokens INTEGER NOT NULL, cost_usd REAL, voices_lost INTEGER NOT NULL,
    dataset TEXT NOT NULL, record_id TEXT NOT NULL, record BLOB NOT NULL, checksum INTEGER,
    PRIMARY KEY (repeat, place, arm)
) WITHOUT ROWID;
"""


_PASSING = "failed IS NOT NULL AND json_extract(said, '$.may_pass')"
_HURT = f"SELECT arm, repeat, dataset, record_id FROM calls WHERE {_PASSING}"
"""The judgements that rest on a call which failed for a reason that passes."""

_Write = tuple[str, tuple[object, ...], asyncio.Future[None], asyncio.AbstractEventLoop]


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call as it ended: what was said, or how it failed, and how long it took."""

    reply: Reply | None
    seconds: float
    failed: FailureKind | None = None
    message: str = ""
    attempts: int = 1
    usage: Usage = field(default_factory=Usage)
    """What a failure took all the same."""
    may_pass: bool = False
    """Whether the call may be answered later: the network, a limit or the server was in the way."""

    def replayed(self) -> Reply:
        """The same answer, or the same failure."""
        if self.reply is None:
            kind = self.failed or "raised"
            raise VoiceError(
                self.message, kind=kind, attempts=self.attempts, usage=self.usage, may_pass=self.may_pass
            )
        return self.reply


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A judged record on its way into the journal: what is summed up on the way, and the whole of it."""

    repeat: int
    place: int
    arm: str
    status: str
    label: str | None
    f: float | None
    alarm: bool | None
    calls: int
    tokens: int
    cost_usd: float | None
    voices_lost: int
    dataset: str
    record_id: str
    record: bytes

    def row(self) -> tuple[object, ...]:
        """In the order of the table's columns."""
        return tuple(getattr(self, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class JudgementKey:
    """Which judgement a call belongs to. In a batch there is one arm and one repeat."""

    arm: str
    repeat: int
    dataset: str
    record_id: str

    def call_key(self, model: str, turn: Turn) -> bytes:
        """Names a call by whose it is and by everything that shapes the answer."""
        return turn.digest(self.arm, self.repeat, self.dataset, self.record_id, model, turn.round_number)


def derive_seed(key: str) -> int:
    """A seed that follows from a judgement's place, so that after a restart every question is the same byte
    for byte: a call is found by its digest."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4]) >> 1


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Whose call it is."""

    judgement: JudgementKey
    voice: str
    round_number: int


class JudgementRef(NamedTuple):
    """Which judgement it is, and its F; None when it failed."""

    repeat: int
    place: int
    arm: str
    dataset: str
    record_id: str
    f: float | None


@contextmanager
def report_damage(name: str, start_over: str) -> Iterator[None]:
    """Report a journal that was damaged on disk in one line, whatever of it cannot be read."""
    try:
        yield
    except (sqlite3.Error, zlib.error, ValueError, TypeError, LookupError) as damage:
        why = " ".join(str(damage).split())[:LONGEST_REASON]
        raise StoreError(f"{name} is damaged: {why}; restore the file from a copy, or {start_over}") from None


def call_as_text(call: FinishedCall) -> str:
    """A call as the journal writes it down."""
    if call.reply:
        return json.dumps({"seconds": call.seconds, "reply": call.reply.dump()})
    lost = {"message": call.message, "attempts": call.attempts, "usage": asdict(call.usage)}
    return json.dumps({"seconds": call.seconds, **lost, "may_pass": call.may_pass})


def call_from_text(failed: FailureKind | None, text: str) -> FinishedCall:
    """A call that the journal holds; earlier versions wrote the parts of the reply beside the seconds."""
    call = json.loads(text)
    if failed is not None:
        usage = Usage(**call.get("usage", {}))
        return FinishedCall(
            None,
            call["seconds"],
            failed,
            call["message"],
            call["attempts"],
            usage,
            call.get("may_pass", False),
        )
    return FinishedCall(Reply.load(call.get("reply", call)), call["seconds"])


TRIES, SECONDS_BETWEEN = 3, 0.2
"""How often a write is tried before the journal counts as broken."""


class Journal:
    """Reads on the caller's thread, writes on its own. `broken` says why work cannot go on with it."""

    start_over = "delete it to start over"
    """What to do about a damaged one that has no copy."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.broken: StoreError | None = None
        self._unwritable: StoreError | None = None
        try:
            self._reading = self._open()
            self._reading.executescript(_TABLES)
            writing = self._open()
        except (sqlite3.Error, UnicodeDecodeError) as broken:  # SQLite quotes damaged words as they are
            why = " ".join(str(broken).split())
            raise StoreError(f"{path}: the journal cannot be used: {why}") from None
        self._waiting: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, args=(writing,), name="journal", daemon=True)
        self._writer.start()

    def _open(self) -> sqlite3.Connection:
        file = sqlite3.connect(
            self.path, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
        )
        file.execute("PRAGMA journal_mode=WAL")
        # A paid answer must survive the power being cut, not only the process.
        file.execute("PRAGMA synchronous=FULL")
        # SQLite opens the files beside the database when they are first needed; later there may be no room.
        file.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return file

    def _undamaged(self) -> AbstractContextManager[None]:
        return report_damage(f"{self.path}: the journal", self.start_over)

    # -- calls -------------------------------------------------------------------------------------

    def find_call(self, key: bytes) -> FinishedCall | None:
        """The call of this key, if it was made before."""
        try:
            with self._undamaged():
                row = self._reading.execute("SELECT failed, said FROM calls WHERE key = ?", (key,)).fetchone()
                return call_from_text(*row) if row else None
        except StoreError as damaged:
            self.broken = damaged  # a run that went on would pay for the call again, or count it as lost
            raise

    async def write_call(self, key: bytes, place: CallPlace, call: FinishedCall) -> None:
        """Write a finished call; back when it is on disk."""
        usage = call.reply.usage if call.reply else call.usage
        await self._insert(
            "OR IGNORE INTO calls",
            (
                key,
                place.judgement.arm,
                place.judgement.repeat,
                place.judgement.dataset,
                place.judgement.record_id,
                place.voice,
                place.round_number,
                call.failed,
                usage.charged_tokens,
                usage.charged_usd,
                call_as_text(call),
            ),
        )

    def spent(self) -> tuple[int, float]:
        """The tokens and the money that all journaled calls took."""
        with self._undamaged():
            sums = self._reading.execute("SELECT sum(tokens), sum(cost_usd) FROM calls").fetchone()
            return int(sums[0] or 0), float(sums[1] or 0.0)

    # -- records -----------------------------------------------------------------------------------

    async def write_records(self, rows: Sequence[RecordRow]) -> None:
        """Write judged records; back when they are on disk."""
        await asyncio.gather(*(self._insert("OR REPLACE INTO records", row.row()) for row in rows))

    def judged_by(self, repeat: int, place: int) -> dict[str, bytes]:
        """Which arms have judged this record in this sitting, with their packed records."""
        with self._undamaged():
            rows = self._reading.execute(
                "SELECT arm, record FROM records WHERE repeat = ? AND place = ?", (repeat, place)
            )
            return dict(rows.fetchall())

    def judged_after(self, last: JudgementRef | None, most: int) -> list[JudgementRef]:
        """The next judgements after one, by sitting, place and arm."""
        with self._undamaged():
            rows = self._reading.execute(
                "SELECT repeat, place, arm, dataset, record_id, f FROM records"
                " WHERE (repeat, place, arm) > (?, ?, ?) ORDER BY repeat, place, arm LIMIT ?",
                (*(last[:3] if last else (-1, -1, "")), most),
            )
            return [JudgementRef(*row) for row in rows]

    def tallies(self) -> list[tuple[object, ...]]:
        """Per arm: arm, records, failed, attacks, found, benign, false alarms, calls, tokens, cost, lost."""
        with self._undamaged():
            return self._reading.execute(
                "SELECT arm, count(*), sum(status = 'failed'),"
                " sum(label = 'attack' AND f IS NOT NULL), sum(label = 'attack' AND alarm),"
                " sum(label = 'benign' AND f IS NOT NULL), sum(label = 'benign' AND alarm),"
                " sum(calls), sum(tokens), sum(cost_usd), sum(voices_lost) FROM records GROUP BY arm"
            ).fetchall()

    def all_records(self, arms: Sequence[str]) -> Iterator[bytes]:
        """Every record as JSON, by sitting, place and the order of the arms."""
        with self._undamaged():
            rows = self._reading.cursor().execute(
                "SELECT repeat, place, arm, record FROM records ORDER BY repeat, place"
            )
            order = {name: number for number, name in enumerate(arms)}
            for _, together in groupby(rows, key=lambda row: row[:2]):
                for _, _, _, packed in sorted(together, key=lambda row: order[row[2]]):
                    yield zlib.decompress(packed)

    def mendable(self) -> tuple[int, int]:
        """How many records failed, and how many lost a voice, for a reason that passes."""
        with self._undamaged():
            counts = self._reading.execute(
                "SELECT sum(status = 'failed'), sum(status != 'failed') FROM records"
                f" WHERE (arm, repeat, dataset, record_id) IN ({_HURT})"
            ).fetchone()
            return int(counts[0] or 0), int(counts[1] or 0)

    def forget_mendable(self) -> None:
        """Let go of records that a passing trouble hurt and of the calls it cost."""
        with self._undamaged():
            self._reading.execute("BEGIN IMMEDIATE")
            self._reading.execute(f"DELETE FROM records WHERE (arm, repeat, dataset, record_id) IN ({_HURT})")
            self._reading.execute(f"DELETE FROM calls WHERE {_PASSING}")
            self._reading.execute("COMMIT")

    def forget_failures(self) -> None:
        """Let go of failed records and of the calls that failed them, to be tried again."""
        with self._undamaged():
            self._reading.execute("BEGIN IMMEDIATE")
            self._reading.execute(
                "DELETE FROM calls WHERE failed IS NOT NULL AND (arm, repeat, dataset, record_id) IN"
                " (SELECT arm, repeat, dataset, record_id FROM records WHERE status = 'failed')"
            )
            self._reading.execute("DELETE FROM records WHERE status = 'failed'")
            self._reading.execute("COMMIT")

    # -- damage ------------------------------------------------------------------------------------

    def verified(self, finished_with: JournalDigest | None = None) -> JournalDigest:
        """What the journal holds, every row looked at; `StoreError` where one is not as it was written.

        `finished_with` is what it held when the run was finished. Rows of earlier versions have no checksum.
        """
        with self._undamaged():
            return digest_of(self._reading, finished_with)

    # -- writing -----------------------------------------------------------------------------------

    async def _insert(self, into: str, row: tuple[object, ...]) -> None:
        values = (*row, checksum_of(row))
        statement = f"INSERT {into} VALUES ({', '.join('?' * len(values))})"
        if self._unwritable:
            raise self._unwritable
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        self._waiting.put((statement, values, written, loop))
        await written

    def _write(self, file: sqlite3.Connection | None) -> None:
        while (first := self._waiting.get()) is not None:
            batch = [first]
            while len(batch) < MOST_AT_ONCE and not self._waiting.empty():
                more = self._waiting.get()
                if more is None:
                    self._waiting.put(None)
                    break
                batch.append(more)
            for tries_left in reversed(range(TRIES)):
                if self._unwritable:
                    break
                try:
                    file = file or self._open()
                    self._commit(file, batch)
                    break
                except (sqlite3.Error, MemoryError) as trouble:
                    # Its calls are paid: a disk that had no room for a moment must not cost them.
                    # Opened again, since SQLite opens a file only for reading where it was refused more.
                    if file:
                        file.close()
                    file = None
                    if tries_left:
                        time.sleep(SECONDS_BETWEEN)
                    else:
                        self.broken = self._unwritable = self._broken_by(trouble)
            for _, _, written, loop in batch:
                with suppress(RuntimeError):  # the caller was cancelled and its loop is closed
                    loop.call_soon_threadsafe(_settle, written, self._unwritable)
        if file:
            file.close()

    def _commit(self, file: sqlite3.Connection, batch: list[_Write]) -> None:
        try:
            file.execute("BEGIN IMMEDIATE")
            add_checksums(file)
            for statement, values, _, _ in batch:
                file.execute(statement, values)
            file.execute("COMMIT")
        except BaseException:
            if file.in_transaction:
                file.execute("ROLLBACK")
            raise

    def _broken_by(self, trouble: Exception) -> StoreError:
        why = str(trouble) or "not enough memory"
        return StoreError(
            f"{self.path}: the journal cannot be written: {why}; fix that (is the disk full?) and"
            " run the same command again: nothing that was journaled is lost"
        )

    def close(self) -> None:
        """Write what is waiting and let go of the file."""
        self._waiting.put(None)
        self._writer.join()
        self._reading.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _settle(written: asyncio.Future[None], error: StoreError | None) -> None:
    if written.done():
        return
    if error:
        written.set_exception(error)
    else:
        written.set_result(None)


_ROWS = {
    "calls": "the call of {5!r} about record {4!r} under arm {1!r}",
    "records": "record {12!r} under arm {2!r}",
}
"""The tables of a journal, and how to name a row of each."""


class JournalDigest(NamedTuple):
    """What a journal holds: the number of its rows, and the sum of their checksums."""

    calls: int
    records: int
    checksum: int


def checksum_of(row: Sequence[object]) -> int:
    """Of a row as SQLite gives it back: without truth values, and a whole number may have become a REAL."""
    return zlib.crc32(repr([_as_stored(value) for value in row]).encode("utf-8", "surrogatepass"))


def _as_stored(value: object) -> object:
    if not isinstance(value, int | float):
        return value
    return None if math.isnan(value) else float(value)


def add_checksums(journal: sqlite3.Connection) -> None:
    """Have room for checksums in a journal that an earlier version began."""
    for table in _ROWS:
        columns = journal.execute(f"SELECT * FROM {table} LIMIT 0").description
        if columns[-1][0] != "checksum":
            journal.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER")


def digest_of(journal: sqlite3.Connection, expected: JournalDigest | None) -> JournalDigest:
    """Look at every row; `ValueError` where one is not as it was written, or all are not what is expected."""
    calls, records = (_check(journal, table) for table in _ROWS)
    found = JournalDigest(len(calls), len(records), sum(calls) + sum(records))
    if expected is not None and expected != found:
        raise ValueError(
            f"it holds {found.calls:,} calls and {found.records:,} records, and not what it held when the run"
            f" was finished ({expected.calls:,} and {expected.records:,})"
        )
    return found


def _check(journal: sqlite3.Connection, table: str) -> list[int]:
    """The checksums of all rows of a table; those of earlier versions have none to compare with."""
    found = []
    rows = journal.cursor().execute(f"SELECT * FROM {table}")
    has_checksums = rows.description[-1][0] == "checksum"
    for row in rows:
        values, written = (row[:-1], row[-1]) if has_checksums else (row, None)
        checksum = checksum_of(values)
        if written not in (None, checksum):
            raise ValueError(f"{_ROWS[table].format(*values)} is not as it was written")
        found.append(checksum)
    return found


@contextmanager
def exclusive_lock(file: Path, busy: ConfigError) -> Iterator[None]:
    """Lock this file, or raise `busy`. A killed process releases the lock."""
    with ExitStack() as held:
        try:
            lock = held.enter_context(closing(sqlite3.connect(file, timeout=0, isolation_level=None)))
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as trouble:
            if "locked" in str(trouble):
                raise busy from None
            raise StoreError(f"{file}: cannot be locked: {trouble}; remove it, if it is there") from None
        yield
