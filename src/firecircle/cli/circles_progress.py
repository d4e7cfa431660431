"""Signs of life of a long command: on a terminal a line counts, and is gone when the work is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

NOT_BEFORE = 0.5
"""Seconds of work that nobody needs to be told of."""
EVERY = 0.1

Thing = TypeVar("Thing")


@contextmanager
def counting(
    doing: str, total: int | None = None, *, not_before: float = NOT_BEFORE
) -> Iterator[Callable[[int], None]]:
    """What to call with how many are done; the line stands on the error stream, if that is a terminal."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield lambda done: None
        return
    due = time.monotonic() + not_before
    of = "" if total is None else f" of {total:,}"
    told = False

    def tell(done: int) -> None:
        nonlocal due, told
        if time.monotonic() >= due:
            due, told = time.monotonic() + EVERY, True
            print(f"\r\x1b[2K{doing} {done:,}{of}", end="", file=stream, flush=True)

    try:
        yield tell
    finally:
        if told:
            print("\r\x1b[2K", end="", file=stream, flush=True)


def counted_off(things: Iterable[Thing], doing: str) -> Iterator[Thing]:
    """The same things, counted while they pass."""
    with counting(doing) as tell:
        for number, thing in enumerate(things, start=1):
            yield thing
            tell(number)
