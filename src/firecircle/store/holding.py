"""Which process holds a sitting circle, and whether it still does."""

from __future__ import annotations

import os
import socket
import time

SILENT_AFTER = 30.0
"""Seconds without a sign of life after which a circle that is said to sit is taken for interrupted."""


def this_process() -> str:
    """Who holds a circle: the machine and the process."""
    return f"{socket.gethostname()}/{os.getpid()}"


def is_abandoned(heard_at: float, held_by: str) -> bool:
    """Whether nobody holds this circle any more: its process is gone, or has been silent for long."""
    host, _, process = held_by.rpartition("/")
    if host == socket.gethostname() and process.isdigit() and not _runs(int(process)):
        return True
    return heard_at < time.time() - SILENT_AFTER


def _runs(process: int) -> bool:
    if os.name == "nt":
        return True  # there, asking would end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
