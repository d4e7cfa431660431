"""Voices that never saw the source they judge: the learned ones are trained without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from firecircle.circle.voice import Voice
from firecircle.lab.datasets import Record
from firecircle.names import EMBEDDED_MODELS, NEURAL_MODEL
from firecircle.voices.embedded import embedded_voice
from firecircle.voices.embedded.voice import EmbeddedVoice
from training import neural_folds, ngrams
from training.labelled import development, further

STATISTICAL = "embedded:ngrams"
Seats = Mapping[str, Mapping[str, Voice]]
"""For each source the voices that judge it, by name."""


def shipped(records: Iterable[Record], models: Sequence[str]) -> Seats:
    """The voices as they ship, for sources that none of them was trained on."""
    voices = {name: embedded_voice(name) for name in models}
    return {record.source: voices for record in records}


def blind_seats(models: Sequence[str]) -> Seats:
    """For each source of dev.jsonl and dev2.jsonl voices that never saw it; none where some did."""
    voices = {name: embedded_voice(name) for name in EMBEDDED_MODELS}
    seats: dict[str, dict[str, Voice]] = {
        source: {**voices, STATISTICAL: EmbeddedVoice(lens)} for source, lens in ngrams.blind_lenses().items()
    }
    if NEURAL_MODEL in models:
        for source, lens in neural_folds.blind_lenses([*development(), *further()]).items():
            seats[source][NEURAL_MODEL] = EmbeddedVoice(lens)
    return seats
