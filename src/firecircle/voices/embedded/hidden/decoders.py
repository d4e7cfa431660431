"""Ways to write a text so that a reader misses it, undone: each decoder yields plain text and where it stood.

A decoder proposes; whether the plain text says anything is for the lens to judge. Every decoder is linear in
the text. Judging is what costs, so how much plain text is handed on is bounded for each kind of disguise: by
its amount, not by how often a disguise is met, or harmless ones before it would cover the one that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from firecircle.voices.embedded.hidden.decoded import Decoded
from firecircle.voices.embedded.hidden.disguises import (
    direction,
    leet,
    lookalikes,
    shifted,
    spaced,
    tag_characters,
    zero_width,
)  # fmt: skip
from firecircle.voices.embedded.hidden.drawing import drawn_text
from firecircle.voices.embedded.hidden.encodings import byte_codes, escapes, signals

MOST = 400_000
"""How many characters of plain text of one kind are handed on."""
EACH = 40
"""What a piece of plain text counts beside its characters: many small ones take longer than a large one."""


def decode(text: str) -> Iterator[Decoded]:
    """Everything that can be read out of a text beside the text itself, the same words only once."""
    left: dict[str, int] = {}
    known: set[tuple[str, str]] = set()
    for decoder in _DECODERS:
        for found in decoder(text):
            room = left.get(found.method, MOST)
            if room <= 0 or (found.method, found.plain) in known:
                continue
            known.add((found.method, found.plain))
            left[found.method] = room - len(found.plain) - EACH
            yield found if len(found.plain) <= room else replace(found, plain=found.plain[:room])


def _drawn(text: str) -> Iterator[Decoded]:
    if found := drawn_text(text):
        plain, start, end = found
        yield Decoded("letters drawn large", plain.lower(), start, end)


_DECODERS: tuple[Callable[[str], Iterator[Decoded]], ...] = (
    tag_characters, zero_width, direction, byte_codes, escapes, signals, spaced, lookalikes, leet, shifted,
    _drawn,
)  # fmt: skip
