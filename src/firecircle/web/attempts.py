"""How often a password may be tried: a few wrong ones, then a wait. Nothing is kept beyond the process."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque

WINDOW = 300.0
"""Seconds after which a wrong password is forgotten."""
MOST_KEYS = 10_000
MOST_OF_ONE = 5
"""Wrong passwords of one name from one address."""
MOST_OF_ADDRESS = 20
MOST_OF_NAME = 50
"""From anywhere: so many that nobody is kept out of an account by a stranger who knows its name."""


class Attempts:
    """The wrong passwords of the last minutes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wrong: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def seconds_to_wait(self, name: str, address: str) -> int:
        """Until this name may be tried from there again; 0 when it may be now."""
        now = time.monotonic()
        wait = 0.0
        with self._lock:
            for key, most in _keys(name, address):
                times = self._wrong.get(key, deque())
                while times and times[0] <= now - WINDOW:
                    times.popleft()
                if len(times) >= most:
                    wait = max(wait, times[-most] + WINDOW - now)
        return math.ceil(wait)

    def note_wrong(self, name: str, address: str) -> None:
        """A wrong password; also of a name that nobody has."""
        with self._lock:
            for key, most in _keys(name, address):
                self._wrong.setdefault(key, deque(maxlen=most)).append(time.monotonic())
                self._wrong.move_to_end(key)
            while len(self._wrong) > MOST_KEYS:
                self._wrong.popitem(last=False)

    def forget(self, name: str, address: str) -> None:
        """The right password was given."""
        with self._lock:
            self._wrong.pop((name, address), None)


def _keys(name: str, address: str) -> tuple[tuple[tuple[str, str], int], ...]:
    return (((name, address), MOST_OF_ONE), (("", address), MOST_OF_ADDRESS), ((name, ""), MOST_OF_NAME))
