"""A run in a process of its own whose voices answer when the test says so."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.cli.running import command, endpoint
from tests.lab.hosting import CIRCLE, customer_of, opinion, plan_text
from tests.loopback import Answer, ChatRequest, LoopbackServer

Found = TypeVar("Found")

PLAN = plan_text(
    CIRCLE,
    before='name = "live"\n[concurrency]\ncalls = 3\n',
    sample=2,
    circle="early_stop_convergence = 0.0\nmax_rounds = 2\n",
)


@dataclass
class Gate:
    """Answers as `opinion` does, each only when it is let through."""

    _places: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    open: bool = False

    def let(self, answers: int) -> None:
        """Let this many calls be answered."""
        for _ in range(answers):
            self._places.release()

    async def answer(self, request: ChatRequest) -> Answer:
        """What the endpoint does with a call."""
        while not self.open and not self._places.acquire(blocking=False):  # noqa: ASYNC110 - another thread
            await asyncio.sleep(0.005)
        return opinion(request)


@contextmanager
def gated() -> Iterator[tuple[LoopbackServer, Gate]]:
    """An endpoint behind a gate."""
    gate = Gate()
    with endpoint(gate.answer) as server:
        try:
            yield server, gate
        finally:
            gate.open = True


@contextmanager
def running(server: LoopbackServer, plan: Path, out: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """`firecircle lab run` as a process; it does not outlive this."""
    arguments = command("lab", "run", str(plan), "--out", str(out), "--json", *more)
    with subprocess.Popen(
        arguments, env=customer_of(server), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def finish(process: subprocess.Popen[bytes]) -> str:
    """Wait for a run to end well; what it said on the error stream."""
    _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told.decode()
    return told.decode()


def until(found: Callable[[], Found | None]) -> Found:
    """What is found, once it is."""
    for _ in range(1000):
        if value := found():
            return value
        time.sleep(0.02)
    raise AssertionError("it never came")
