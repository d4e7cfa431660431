"""How the statistical voice sees a text: words, pieces of words, pairs of words, and words by layer, hashed.

Training (`bench/train_ngrams.py`) and judging share this file, so that both see the same thing.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, repeat

from firecircle.voices.embedded.text import Sentence

BITS = 16
SIZE = 1 << BITS
LONGEST_WINDOW = {"user": 400, "application": 160}
"""Characters a window may span: about what one breath of a prompt says, and in a document one order."""


def bucket(feature: str) -> int:
    """The place of a feature among the weights."""
    return zlib.crc32(feature.encode("utf-8", "replace")) & (SIZE - 1)


@lru_cache(maxsize=50_000)
def _pieces(word: str) -> tuple[int, ...]:
    """The word and its pieces of three to five characters."""
    found = {bucket(f"w {word}")}
    padded = f"<{word[:24]}>"
    for size in (3, 4, 5):
        found.update(bucket(f"c {padded[at : at + size]}") for at in range(len(padded) - size + 1))
    return tuple(sorted(found))


@lru_cache(maxsize=100_000)
def _pair(first: str, second: str) -> int:
    return bucket(f"b {first} {second}")


def features(window: Sequence[Sentence]) -> frozenset[int]:
    """The places of everything a window contains."""
    if len(window) == 1:
        return _of_sentence(window[0].layer[:1], window[0].words)
    parts = (_parts(sentence.layer[:1], sentence.words) for sentence in window)
    return frozenset().union(*chain.from_iterable(parts))


@lru_cache(maxsize=128)
def _of_sentence(layer: str, words: tuple[str, ...]) -> frozenset[int]:
    """Remembered for a while: a sentence is weighed by itself when it is shown, and when peers quote it."""
    return frozenset().union(*_parts(layer, words))


def _parts(layer: str, words: tuple[str, ...]) -> tuple[Iterable[int], ...]:
    pairs = map(_pair, ("^", *words), words)
    return (*map(_pieces, words), map(_pair, repeat(f"layer {layer}"), words), pairs)


def windows(sentences: Sequence[Sentence]) -> Iterator[tuple[Sentence, ...]]:
    """A layer as windows that follow each other, each of whole sentences."""
    window: list[Sentence] = []
    for sentence in sentences:
        if window and sentence.end - window[0].start > LONGEST_WINDOW.get(sentence.layer, 400):
            yield tuple(window)
            window = []
        window.append(sentence)
    if window:
        yield tuple(window)
