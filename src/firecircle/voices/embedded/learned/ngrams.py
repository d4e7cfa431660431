"""The statistical reader: which windows of a prompt look, by their n-grams, like those of known attacks?"""

from __future__ import annotations

import heapq
import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import chain, repeat
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from firecircle.voices.embedded.language.prompt_reading import PromptReading, ReadSentence
from firecircle.voices.embedded.language.text import Sentence
from firecircle.voices.embedded.learned import LEARNT_TYPES
from firecircle.voices.embedded.lenses.findings import (
    Finding,
    Place,
    Reread,
    does,
    in_its_prompt,
    probability,
    says_something,
)

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
MOST_FOUND = 3
"""Windows that become findings."""
TYPE_BITS = 14
TYPE_SIZE = 1 << TYPE_BITS
"""The types are told apart by coarser places than attacks from harmless text."""
_HEADER = struct.Struct(f"<5f{len(LEARNT_TYPES)}f")
_ZERO = 128
_FROM_ZERO = bytes((step + _ZERO) & 0xFF for step in range(256))
"""Steps of either sign as bytes that count from zero: 64 kB that stay in a processor's cache."""


class NgramModel:
    """A logistic regression over hashed n-grams, the calibration of its score, and one over the types."""

    def __init__(self, packed: bytes) -> None:
        self._unit, self._offset, self._slope, self._shift, type_unit, *offsets = _HEADER.unpack_from(packed)
        numbers = zlib.decompress(packed[_HEADER.size :])
        if len(numbers) != SIZE + TYPE_SIZE * len(LEARNT_TYPES):
            raise ValueError(f"{WEIGHTS_FILE} has {len(numbers)} weights, others are needed: train it again")
        self._weights = numbers[:SIZE].translate(_FROM_ZERO)
        steps = np.frombuffer(numbers[SIZE:], np.int8).reshape(TYPE_SIZE, len(LEARNT_TYPES))
        self._types = steps.astype(np.float32) * np.float32(type_unit)
        self._type_offsets = np.array(offsets, np.float32)

    def probability(self, window: Sequence[Sentence]) -> float:
        """The calibrated probability that a window belongs to an attack."""
        places = features(window)
        weight = sum(itemgetter(*places)(self._weights)) - _ZERO * len(places)
        score = self._offset + self._unit * weight / math.sqrt(len(places) + 1)
        return probability(self._slope * score + self._shift)

    def types(self, window: Sequence[Sentence]) -> dict[str, float]:
        """How probable each pattern type is, if the window is manipulation at all."""
        places = type_places(features(window))
        scores = self._type_offsets + self._types[places].sum(0) / math.sqrt(len(places) + 1)
        chances = np.exp(scores - scores.max())
        return dict(zip(LEARNT_TYPES, map(float, chances / chances.sum()), strict=True))


def type_places(places: Iterable[int]) -> list[int]:
    """The coarser places that tell types apart."""
    return sorted({place & (TYPE_SIZE - 1) for place in places})


@cache
def shipped_model() -> NgramModel:
    """The model that comes with the package."""
    return NgramModel(resources.files(__package__).joinpath(WEIGHTS_FILE).read_bytes())


class NgramReader:
    """Windows of text weighed by a model: the shipped one, or another for an experiment."""

    name = "ngrams"
    looks_at = "which words and pieces of words are typical of known attacks"
    reserve, confirms_from, type_from = 1.3, 0.45, 0.35

    def __init__(self, model: NgramModel | None = None) -> None:
        self.model = model or shipped_model()

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """The windows that look most like an attack, each shown by its worst sentence; none in a language
        that it did not learn from."""
        if reading.unread:
            return ()
        weighed = [
            (self.model.probability(window), window)
            for reads in (reading.application, reading.user)
            for window in _worth_weighing(reads)
        ]
        worst = heapq.nlargest(MOST_FOUND, weighed, key=itemgetter(0))
        return tuple(self._finding(reading, strength, window) for strength, window in worst)

    def _finding(self, reading: PromptReading, strength: float, window: Sequence[Sentence]) -> Finding:
        telling = [each for each in window if says_something(each.text[each.start : each.end])]
        shown = max(telling or window, key=lambda sentence: self.model.probability((sentence,)))
        kind = max(self.model.types(window).items(), key=itemgetter(1))[0]
        place = (shown.layer, *shown.quote())
        strength = in_its_prompt(reading, kind, strength, _place(window))
        return Finding(kind, strength, *place, f"These words are phrased like texts that {does(kind)}")

    def weigh(self, findings: Iterable[Finding]) -> float:
        """The worst window counts: windows of one prompt are anything but independent."""
        return max((finding.strength for finding in findings), default=0.0)

    def reread(self, reading: PromptReading, layer: str, start: int, end: int) -> Reread:
        """How the quoted words weigh by themselves."""
        reads = reading.application if layer == "application" else reading.user
        there = [
            window
            for window in windows([read.sentence for read in reads])
            if window[0].start < end and start < window[-1].end
        ]
        if not there:
            return Reread(0.0, {})
        strength, worst = max(((self.model.probability(each), each) for each in there), key=itemgetter(0))
        types = self.model.types(worst)
        kind = max(types.items(), key=itemgetter(1))[0]
        return Reread(in_its_prompt(reading, kind, strength, _place(worst)), types)

    def blindness(self, reading: PromptReading) -> float:
        """It knows only what its training data contained."""
        return BLIND

    def unread(self, reading: PromptReading) -> tuple[str, ...]:
        """It learned from English."""
        return reading.unread


def _place(window: Sequence[Sentence]) -> Place:
    return window[0].layer, window[0].start, window[-1].end


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


def pack(
    weights: Sequence[float],
    calibration: tuple[float, float, float],
    types: NDArray[np.float32],
    type_offsets: NDArray[np.float32],
) -> bytes:
    """The weights as eight-bit steps, compressed, behind their steps, offsets and calibration."""
    unit = max(map(abs, weights)) / 127 or 1.0
    steps = bytes((round(weight / unit) & 0xFF) for weight in weights)
    type_unit = float(np.abs(types).max()) / 127 or 1.0
    type_steps = np.round(types / type_unit).astype(np.int8).tobytes()
    header = _HEADER.pack(unit, *calibration, type_unit, *map(float, type_offsets))
    return header + zlib.compress(steps + type_steps, 9)
