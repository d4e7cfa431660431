"""The names that voices give to the members of an object, whatever their case and decoration."""

from __future__ import annotations

import re
from functools import lru_cache

NAMES_KEPT = 1_000
"""How many are remembered: voices use the same dozen over and over."""
_NOT_A_LETTER = re.compile(r"[^a-z]")
_LONGEST_NAME = 60


def plain_name(key: str) -> str:
    """The letters of a name in lower case; nothing of one that is too long to be a name."""
    return _letters(key) if len(key) <= _LONGEST_NAME else ""


@lru_cache(maxsize=NAMES_KEPT)
def _letters(key: str) -> str:
    return _NOT_A_LETTER.sub("", key.casefold())
