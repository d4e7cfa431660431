"""Saved replies on this machine, so that the same question to the same model is paid for once.

The same means: model, address, every message, and every setting that affects the answer. Only the answer is
saved, under a digest of all that; neither the question nor a key is. Processes may share the file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from firecircle.circle.voice import Reply, Turn, Usage
from firecircle.errors import ConfigError
from firecircle.settings import user_folder
from firecircle.voices.hosted.providers import Provider
from firecircle.voices.hosted.voice import HostedVoice

FILE_NAME = "replies.sqlite"
SECONDS_TO_WAIT = 20.0
"""For another process to finish writing."""

_log = logging.getLogger(__name__)


class ReplyCache:
    """The file of replies, by digest of the question."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or user_folder("cache") / FILE_NAME
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._prepare()
            self.path.chmod(0o600)
        except (OSError, sqlite3.Error) as broken:
            raise ConfigError(
                "cache_enabled", f"cannot use {self.path}: {broken}", "delete it, or turn the cache off"
            ) from None

    def _prepare(self) -> None:
        patience = time.monotonic() + SECONDS_TO_WAIT
        while True:
            try:
                with closing(self._open()) as file, file:
                    file.execute("PRAGMA journal_mode=WAL")
                    file.execute(
                        "CREATE TABLE IF NOT EXISTS replies (digest TEXT PRIMARY KEY, model TEXT NOT NULL,"
                        " stored_at REAL NOT NULL, reply TEXT NOT NULL) WITHOUT ROWID"
                    )
                return
            except sqlite3.OperationalError as trouble:
                # Another process is creating the file; SQLite does not wait when it sets the journal mode.
                if "locked" not in str(trouble) or time.monotonic() > patience:
                    raise
                time.sleep(0.02)

    def find(self, digest: str) -> Reply | None:
        """The saved reply, marked as such: it costs nothing and asks no model."""
        with closing(self._open()) as file:
            row = file.execute("SELECT reply FROM replies WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            return None
        reply = Reply.load(json.loads(row[0]))
        usage = replace(reply.usage, cost_usd=0.0, estimated_tokens=0, estimated_usd=0.0)
        return replace(reply, usage=usage, attempts=0, cached=True)

    def keep(self, digest: str, model: str, reply: Reply) -> None:
        """Save a reply; of two at once the first remains."""
        with closing(self._open()) as file, file:
            file.execute(
                "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)",
                (digest, model, time.time(), json.dumps(reply.dump())),
            )

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=SECONDS_TO_WAIT)


class CachedVoice:
    """A hosted voice that sends only new questions."""

    def __init__(self, voice: HostedVoice, cache: ReplyCache) -> None:
        self._voice = voice
        self._cache = cache

    @property
    def provider(self) -> Provider:
        """The provider for new questions."""
        return self._voice.provider

    async def speak(self, turn: Turn) -> Reply:
        """The saved reply, otherwise the voice's, which is then saved."""
        digest = self._digest(turn)
        kept = await asyncio.to_thread(self._find, digest)
        if kept:
            return kept
        reply = await self._voice.speak(turn)
        if reply.text.strip():
            await asyncio.to_thread(self._keep, digest, reply)
        return reply

    def estimate(self, turn: Turn) -> Usage:
        """Zero for a saved reply, otherwise the voice's estimate."""
        return Usage(0, 0, 0, 0.0) if self._find(self._digest(turn)) else self._voice.estimate(turn)

    def _digest(self, turn: Turn) -> str:
        """The digest of voice and question. A clone (`model#2`) must answer by itself, so its name counts."""
        provider = self.provider
        asked = (self._voice.model, provider.base_url, provider.structured_output)
        return turn.digest(*asked, *(("by word",) if self._voice.by_word else ())).hex()

    def _find(self, digest: str) -> Reply | None:
        try:
            return self._cache.find(digest)
        except (sqlite3.Error, ValueError, KeyError, TypeError) as broken:
            _log.warning("the reply cache %s cannot be read: %s", self._cache.path, broken)
            return None

    def _keep(self, digest: str, reply: Reply) -> None:
        # A full disk does not cost a paid reply.
        try:
            self._cache.keep(digest, self._voice.model, reply)
        except sqlite3.Error as broken:
            _log.warning("the reply cache %s cannot be written: %s", self._cache.path, broken)
