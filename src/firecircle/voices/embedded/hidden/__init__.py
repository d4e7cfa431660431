"""Text that is written so that a reader misses it: each decoder yields plain text and where it stood.

A decoder proposes; the lens judges whether the plain text says anything. Every decoder is linear in the text.
Judging is what costs, so the plain text of each kind of disguise is bounded by its amount. A bound on the
number of disguises would let harmless ones cover the one that matters.
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
        for decoded in decoder(text):
            room = left.get(decoded.method, MOST)
            if room <= 0 or (decoded.method, decoded.plain) in known:
                continue
            known.add((decoded.method, decoded.plain))
            left[decoded.method] = room - len(decoded.plain) - EACH
            yield decoded if len(decoded.plain) <= room else replace(decoded, plain=decoded.plain[:room])


_DECODERS: tuple[Callable[[str], Iterator[Decoded]], ...] = (
    tag_characters, zero_width, direction, byte_codes, escapes, signals, spaced, lookalikes, leet, shifted,
)  # fmt: skip
