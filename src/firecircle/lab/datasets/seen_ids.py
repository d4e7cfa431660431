"""Which ids were used before, for a million rows in a few megabytes."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b

CACHE_KIBIBYTES = 16_384


class SeenIds:
    """Digests of ids in a temporary database that SQLite moves to disk as it grows."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY, line INTEGER) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def first_line(self, record_id: str, line: int) -> int | None:
        """The line that already used this id; None when it is new, which is then remembered."""
        digest = blake2b(record_id.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        added = self._database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (digest, line))
        if added.rowcount:
            return None
        found: tuple[int] = self._database.execute(
            "SELECT line FROM seen WHERE digest = ?", (digest,)
        ).fetchone()
        return found[0]

    def close(self) -> None:
        """Let the temporary database go."""
        self._database.close()
