"""Replies kept on this machine, so that the same question to the same model is paid for once.

The same is: the model and its address, every message, and every setting that shapes the answer. What is kept
is the answer alone, under a digest of all that; neither the question nor any key is written down. Processes
may share the file.
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
    """The file, by digest of the question."""

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
                # Whoever made the file at the same moment is at it; SQLite does not wait for a kind of log.
                if "locked" not in str(trouble) or time.monotonic() > patience:
                    raise
                time.sleep(0.02)

    def find(self, digest: str) -> Reply | None:
        """The reply that was kept, marked as such: nothing was paid and nobody asked."""
        with closing(self._open()) as file:
            row = file.execute("SELECT reply FROM replies WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            return None
        reply = Reply.load(json.loads(row[0]))
        usage = replace(reply.usage, cost_usd=0.0, estimated_tokens=0, estimated_usd=0.0)
        return replace(reply, usage=usage, attempts=0, cached=True)

    def keep(self, digest: str, model: str, reply: Reply) -> None:
        """Write a reply down; of two that come at once the first stays."""
        with closing(self._open()) as file, file:
            file.execute(
                "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)",
                (digest, model, time.time(), json.dumps(reply.dump())),
            )

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=SECONDS_TO_WAIT)


class CachedVoice:
    """A hosted voice that is asked only what it was not asked before."""

    def __init__(self, voice: HostedVoice, cache: ReplyCache) -> None:
        self._voice = voice
        self._cache = cache

    @property
    def provider(self) -> Provider:
        """Who is asked what is not kept."""
        return self._voice.provider

    async def speak(self, turn: Turn) -> Reply:
        """The kept reply, else the voice's, which is kept."""
        digest = self._digest(turn)
        kept = await asyncio.to_thread(self._found, digest)
        if kept:
            return kept
        reply = await self._voice.speak(turn)
        if reply.text.strip():
            await asyncio.to_thread(self._keep, digest, reply)
        return reply

    def estimate(self, turn: Turn) -> Usage:
        """Nothing for what is kept, else what the voice expects."""
        return Usage(0, 0, 0, 0.0) if self._found(self._digest(turn)) else self._voice.estimate(turn)

    def _digest(self, turn: Turn) -> str:
        """Who is asked, and what. A clone (`model#2`) is to answer on its own, so its name counts."""
        provider = self.provider
        asked = (self._voice.model, provider.base_url, provider.structured_output)
        return turn.digest(*asked, *(("by word",) if self._voice.by_word else ())).hex()

    def _found(self, digest: str) -> Reply | None:
        try:
            return self._cache.find(digest)
        except (sqlite3.Error, ValueError, KeyError, TypeError) as broken:
            _log.warning("the reply cache %s cannot be read: %s", self._cache.path, broken)
            return None

    def _keep(self, digest: str, reply: Reply) -> None:
        # A reply that was paid for is not given up because a disk is full.
        try:
            self._cache.keep(digest, self._voice.model, reply)
        except sqlite3.Error as broken:
            _log.warning("the reply cache %s cannot be written: %s", self._cache.path, broken)
