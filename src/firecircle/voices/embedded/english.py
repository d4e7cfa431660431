"""Does a text read as English at all? A few hundred of the commonest words are enough to tell."""

from __future__ import annotations

import re
from functools import cache

from firecircle.voices.embedded.words import word_list

_WORD = re.compile(r"[a-z']+")


def reads_as_english(text: str) -> bool:
    """Whether enough of the words are common ones."""
    words = _WORD.findall(text.lower())
    if len(words) < 3:
        return False
    known = sum(map(_common().__contains__, words))
    return known >= 2 and known >= 0.25 * len(words)


@cache
def _common() -> frozenset[str]:
    return frozenset(word for word in word_list("common") if len(word) > 1)
