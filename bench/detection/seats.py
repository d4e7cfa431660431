"""Voices that never saw the source they judge: the learned ones are trained without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from firecircle.circle.voice import Voice
from firecircle.lab.datasets import Record
from firecircle.names import EMBEDDED_MODELS, NEURAL_MODEL
from firecircle.voices.embedded import embedded_voice
from firecircle.voices.embedded.learned.ngrams import NgramLens, NgramModel, pack
from firecircle.voices.embedded.voice import EmbeddedVoice
from training.labelled import development, further
from training.neural_folds import blind_lenses
from training.ngrams import bags_of, calibrate, fitted_without, left_out

STATISTICAL = "embedded:ngrams"
Seats = Mapping[str, Mapping[str, Voice]]
"""For each source the voices that judge it, by name."""


def rule_and_statistical() -> Seats:
    """The default circle, its statistical voice trained without the source."""
    rules = {name: embedded_voice(name) for name in EMBEDDED_MODELS if name != STATISTICAL}
    bags = bags_of(development())
    models = fitted_without(bags)
    calibration = calibrate(left_out(bags, models))
    seats: dict[str, dict[str, Voice]] = {}
    for fold, model in models:
        learned = NgramModel(pack(model.weights, model.offset, *calibration))
        by_name: dict[str, Voice] = {**rules, STATISTICAL: EmbeddedVoice(NgramLens(learned))}
        for source in fold:
            seats[source] = {name: by_name[name] for name in EMBEDDED_MODELS}
    return seats


def shipped(records: Iterable[Record], models: Sequence[str]) -> Seats:
    """The voices as they ship, for sources that none of them was trained on."""
    voices = {name: embedded_voice(name) for name in models}
    return {record.source: voices for record in records}


def blind_seats(models: Sequence[str]) -> Seats:
    """For each source of dev.jsonl and dev2.jsonl voices that never saw it; none where some did."""
    records = [*development(), *further()]
    seats = {**shipped(records, EMBEDDED_MODELS), **rule_and_statistical()}
    if NEURAL_MODEL not in models:
        return seats
    lenses = blind_lenses(records)
    return {source: {**seats[source], NEURAL_MODEL: EmbeddedVoice(lens)} for source, lens in lenses.items()}
