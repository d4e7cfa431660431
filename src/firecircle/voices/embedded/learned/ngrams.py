"""The statistical lens: which windows of a prompt look, by their n-grams, like those of known attacks?"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import chain, repeat
from operator import itemgetter

from firecircle.voices.embedded.language.prompt_reading import PromptReading, ReadSentence
from firecircle.voices.embedded.language.text import Sentence
from firecircle.voices.embedded.lenses.findings import Finding

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
    places = {bucket(f"w {word}")}
    padded = f"<{word[:24]}>"
    for size in (3, 4, 5):
        places.update(bucket(f"c {padded[at : at + size]}") for at in range(len(padded) - size + 1))
    return tuple(sorted(places))


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


WEIGHTS_FILE = "ngrams.bin"
BLIND = 0.35
"""How much it does not know. Set by hand; weights and calibration are trained (`training.ngrams`)."""
MOST_WINDOWS = 800
"""About 300,000 characters of a user, 120,000 of a document."""
_HEADER = struct.Struct("<4f")
_ZERO = 128
_FROM_ZERO = bytes((step + _ZERO) & 0xFF for step in range(256))
"""Steps of either sign as bytes that count from zero: 64 kB that stay in a processor's cache."""


class NgramModel:
    """A logistic regression over hashed n-grams, with the calibration of its score."""

    def __init__(self, packed: bytes) -> None:
        self._unit, self._offset, self._slope, self._shift = _HEADER.unpack_from(packed)
        self._weights = zlib.decompress(packed[_HEADER.size :]).translate(_FROM_ZERO)
        if len(self._weights) != SIZE:
            raise ValueError(f"the model has {len(self._weights)} weights, {SIZE} are needed: train it again")

    def probability(self, window: Sequence[Sentence]) -> float:
        """The calibrated probability that a window belongs to an attack."""
        places = features(window)
        weight = sum(itemgetter(*places)(self._weights)) - _ZERO * len(places)
        score = self._offset + self._unit * weight / math.sqrt(len(places) + 1)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, self._slope * score + self._shift))))


@cache
def shipped_model() -> NgramModel:
    """The model that comes with the package."""
    return NgramModel(resources.files(__package__).joinpath(WEIGHTS_FILE).read_bytes())


class NgramLens:
    """Windows of text weighed by a model: the shipped one, or another for an experiment."""

    name = "ngrams"
    looks_at = "which words weigh as they do in known attacks"

    def __init__(self, model: NgramModel | None = None) -> None:
        self.model = model or shipped_model()

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """The window that looks most like an attack, shown by its worst sentence."""
        worst: tuple[Sentence, ...] = ()
        strength = 0.0
        for reads in (reading.application, reading.user):
            for window in _worth_weighing(reads):
                likely = self.model.probability(window)
                if likely > strength:
                    worst, strength = window, likely
        if not worst:
            return ()
        shown = max(worst, key=lambda sentence: self.model.probability((sentence,)))
        start, end = shown.quote()
        note = "these words weigh like those of known attacks"
        # The statistics know no types, so none is declared.
        return (Finding(None, strength, shown.layer, start, end, note),)

    def support(self, reading: PromptReading, layer: str, start: int, end: int) -> float:
        """How the quoted words weigh by themselves."""
        sentences = [read.sentence for read in reading.at(layer, start, end)]
        return self.model.probability(sentences) if sentences else 0.0

    def blindness(self, reading: PromptReading) -> float:
        """It knows only what its training data contained."""
        return BLIND


def _worth_weighing(reads: Sequence[ReadSentence]) -> Iterable[tuple[Sentence, ...]]:
    """All windows; of a very long text the first and last, and those that order or want something."""
    all_windows = list(windows([read.sentence for read in reads]))
    if len(all_windows) <= MOST_WINDOWS:
        return all_windows
    telling = {id(read.sentence) for read in reads if read.orders or read.intents}
    edge = MOST_WINDOWS // 4
    return [
        window
        for at, window in enumerate(all_windows)
        if at < edge or at >= len(all_windows) - edge or any(id(sentence) in telling for sentence in window)
    ]


def pack(weights: Sequence[float], offset: float, slope: float, shift: float) -> bytes:
    """The weights as eight-bit steps, compressed, behind their step, offset and calibration."""
    unit = max(map(abs, weights)) / 127 or 1.0
    steps = bytes((round(weight / unit) & 0xFF) for weight in weights)
    return _HEADER.pack(unit, offset, slope, shift) + zlib.compress(steps, 9)
