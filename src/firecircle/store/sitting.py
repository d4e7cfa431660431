"""A circle while it runs: its place in a run or batch, and the process that runs it."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass

SILENT_AFTER = 30.0
"""Seconds without a heartbeat after which a circle counts as interrupted."""


@dataclass(frozen=True, slots=True)
class InRun:
    """A circle's place in a run of the lab."""

    run_id: str
    arm: str
    record_id: str


@dataclass(frozen=True, slots=True)
class InBatch:
    """A circle's place in a batch: name of the batch, colon, id of the prompt."""

    record_id: str
    began: float | None = None
    """When the batch was first started: a circle of this prompt that began since then is replaced."""


def this_process() -> str:
    """The process that runs a circle: machine and process id."""
    return f"{socket.gethostname()}/{os.getpid()}"


def is_abandoned(heard_at: float, held_by: str) -> bool:
    """Whether no process runs this circle any more: it has ended, or been silent for long."""
    host, _, process = held_by.rpartition("/")
    if host == socket.gethostname() and process.isdigit() and not _runs(int(process)):
        return True
    return heard_at < time.time() - SILENT_AFTER


def _runs(process: int) -> bool:
    if os.name == "nt":
        return True  # on Windows, asking would end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
