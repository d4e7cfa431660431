"""The statistical lens: which windows of a prompt look, by their n-grams, like those of known attacks?

It knows no rule and gives no reason beyond "these words weigh"; its worth is that it errs differently from
the rules. The weights are numbers only, made by `bench/train_ngrams.py`.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from operator import itemgetter

from firecircle.voices.embedded.findings import Finding
from firecircle.voices.embedded.ngram_features import SIZE, features, windows
from firecircle.voices.embedded.reading import Read, Reading
from firecircle.voices.embedded.text import Sentence

WEIGHTS_FILE = "ngrams.bin"
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
        found = features(window)
        weight = sum(itemgetter(*found)(self._weights)) - _ZERO * len(found)
        score = self._offset + self._unit * weight / math.sqrt(len(found) + 1)
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

    def find(self, reading: Reading) -> tuple[Finding, ...]:
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
        pattern = _pattern(reading, shown.layer, start, end)
        return (Finding(pattern, strength, shown.layer, start, end, note),)

    def support(self, reading: Reading, layer: str, start: int, end: int) -> float:
        """How the quoted words weigh by themselves."""
        sentences = [read.sentence for read in reading.at(layer, start, end)]
        return self.model.probability(sentences) if sentences else 0.0

    def blindness(self, reading: Reading) -> float:
        """It knows only what its training data contained."""
        return 0.35


def _worth_weighing(reads: Sequence[Read]) -> Iterable[tuple[Sentence, ...]]:
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


_TYPES = {
    "config": "polite_extraction",
    "secret": "polite_extraction",
    "private": "polite_extraction",
    "guarded": "polite_extraction",
    "unchecked": "polite_extraction",
}


def _pattern(reading: Reading, layer: str, start: int, end: int) -> str:
    """The statistics know no types; what the sentence wants, or else its layer, gives one."""
    wanted = (read.strongest() for read in reading.at(layer, start, end))
    strongest = max((intent for intent in wanted if intent), key=lambda i: i.strength, default=None)
    default = "cross_layer_fabrication" if layer == "application" else "role_confusion"
    return _TYPES.get(strongest.name, default) if strongest else default


def pack(weights: Sequence[float], offset: float, slope: float, shift: float) -> bytes:
    """The weights as eight-bit steps, compressed, behind their step, offset and calibration."""
    unit = max(map(abs, weights)) / 127 or 1.0
    steps = bytes((round(weight / unit) & 0xFF) for weight in weights)
    return _HEADER.pack(unit, offset, slope, shift) + zlib.compress(steps, 9)
