"""Readers that never saw the source they judge: the learned ones are trained without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from firecircle.circle.voice import Voice
from firecircle.lab.datasets import Record
from firecircle.names import EMBEDDED_MODELS
from firecircle.voices.embedded import embedded_voice
from firecircle.voices.embedded.voice import ReaderVoice
from training import neural_folds, ngrams

Seats = Mapping[str, Mapping[str, Voice]]
"""For each source the voices that judge it, by name."""


def shipped(records: Iterable[Record], models: Sequence[str]) -> Seats:
    """The voices as they ship, for sources that none of them was trained on."""
    voices = {name: embedded_voice(name) for name in models}
    return {record.source: voices for record in records}


def blind_seats(records: Iterable[Record], models: Sequence[str]) -> Seats:
    """For each source readers that never saw it."""
    rules, statistical, neural = EMBEDDED_MODELS
    sources = {record.source for record in records}
    seats: dict[str, dict[str, Voice]] = {source: {rules: embedded_voice(rules)} for source in sources}
    for model, blind in ((statistical, ngrams.blind_readers), (neural, neural_folds.blind_readers)):
        if model in models:
            for source, reader in blind(sources).items():
                seats[source][model] = ReaderVoice(reader)
    return seats
