"""Running the command line and looking at what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.loopback import LoopbackServer, Script

ATTACK = "temporal_inconsistency-01-attack"
TRIO = "anthropic/claude-sonnet-4,qwen/qwen-2.5-72b-instruct,deepseek/deepseek-r1"
"""Three hosted voices that form a quorum."""


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def trouble(self) -> str:
        """The error stream without the line that names the settings file."""
        named, _, rest = self.err.partition("\n")
        return rest if named.startswith("settings: ") else self.err


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "firecircle", *arguments]


def ran_apart(
    *arguments: str | bytes, text: str | bytes = b"", seconds: float = 240, **environment: str
) -> Ran:
    """Run a command line as a process of its own, with this on its standard input."""
    done = subprocess.run(
        [sys.executable, "-m", "firecircle", *arguments],
        input=text.encode() if isinstance(text, str) else text,
        capture_output=True,
        timeout=seconds,
        env={**os.environ, **environment},
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def endpoint(script: Script) -> Iterator[LoopbackServer]:
    """An endpoint on loopback that lives in a thread of its own, for commands that bring their own loop."""
    server = LoopbackServer(script)
    ready, loop, closing = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with server:
            ready.set()
            await closing.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(10)
        yield server
    finally:
        loop.call_soon_threadsafe(closing.set)
        thread.join(10)
        loop.close()


def steady(text: str) -> str:
    """Output without what differs from run to run: seconds, ids of what was kept, blanks at line ends."""
    text = re.sub(r"\bas \w{8}: firecircle circles show \w{8}", "as ID: firecircle circles show ID", text)
    text = re.sub(r"\b\d+\.\d+ s\b", "N s", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def flowing(text: str) -> str:
    """Output as if the screen were endlessly wide."""
    return " ".join(text.split())


def assert_one_line_of_trouble(ran: Ran, *words: str) -> None:
    assert ran.status == 2
    assert ran.out == ""
    assert ran.trouble.startswith("error: ")
    assert ran.trouble.count("\n") == 1
    for word in words:
        assert word in ran.trouble
