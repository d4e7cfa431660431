"""Train the statistical voice: `python -m training.ngrams` writes voices/embedded/learned/ngrams.bin.

Needs the extra `lab`, ../shared/data and training/data/authored_*.jsonl and typed_*.jsonl (written for this
project, always trained on and never scored); the same data gives the same bytes. Pairs that differ only in
what they mean teach a bag of words nothing, and long documents make it suspect short requests
(docs/detection-notes.md).

A logistic regression over hashed n-grams is fitted to windows of text: every window of a benign prompt is
benign, and of an attack the window that looks worst so far (a long prompt is mostly filler). An attack in the
user's words is an attack in a document too, so each is shown in both layers.

What is printed, and what calibrates the voice, comes from models that never saw the source of the prompt they
score: the sources are dealt into folds. Their
weights are kept in training/folds for `bench.detection` and others. The shipped ones are then fitted to
everything. With `--check` nothing is written.
"""

from __future__ import annotations

import argparse
import math
import random
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from firecircle.lab.datasets import Record
from firecircle.lab.statistics.performance import performance
from firecircle.voices.embedded.dialogue import RESERVE
from firecircle.voices.embedded.language.prompt_reading import read_prompt
from firecircle.voices.embedded.language.text import Sentence, sentences
from firecircle.voices.embedded.learned import LEARNT_TYPES
from firecircle.voices.embedded.learned.ngrams import (
    SIZE,
    TYPE_SIZE,
    WEIGHTS_FILE,
    NgramModel,
    NgramReader,
    features,
    pack,
    type_places,
    windows,
)
from training import ROOT, VOICES
from training.labelled import ALARM, authored, development, further, is_attack, latest, twins, type_of
from training.neural_folds import labelled_folds

EPOCHS = 12
DECAY = 2e-4
RATE = 4.0
LOOKS = 2
"""How often the worst window of each attack is chosen anew."""
FALSE_ALARMS = 0.004
"""The share of harmless prompts of unseen sources that may alarm this reader alone, its reserve included.
It is the weakest of the three, so it is to be nearly sure."""
SHARPER = 1.5
"""How much steeper than Platt's the slope is: what the weakest reader half suspects must not drown what the
others are sure of (decision 099)."""
TYPE_EPOCHS, TYPE_RATE, TYPE_DECAY = 20, 1.0, 1e-3

Window: TypeAlias = "array[int]"


@dataclass(frozen=True, slots=True)
class Bag:
    """One prompt as the features of its windows; `elsewhere` are those of an attack as if in a document."""

    source: str
    attack: bool
    windows: tuple[Window, ...]
    elsewhere: tuple[Window, ...] = ()
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """One window to learn from, and how much it counts."""

    window: Window
    attack: bool
    weight: float


def bags_of(records: Iterable[Record]) -> list[Bag]:
    """The prompts as windows; one without any word has none and is left out."""
    bags = []
    for record in records:
        user = sentences(record.prompt.user, "user")
        layers = (sentences(record.prompt.application, "application"), user)
        seen = tuple(_packed(window) for layer in layers for window in windows(layer))
        if seen:
            attack = is_attack(record)
            elsewhere = tuple(_packed(window) for window in windows(_in_a_document(user))) if attack else ()
            bags.append(Bag(record.source, attack, seen, elsewhere, type_of(record)))
    return bags


def _in_a_document(user: Iterable[Sentence]) -> list[Sentence]:
    return [sentence._replace(layer="application") for sentence in user]


def _packed(window: Sequence[Sentence]) -> Window:
    return array("i", sorted(features(window)))


class Model:
    """The weights and the offset of a logistic regression."""

    def __init__(self, weights: Iterable[float] | None = None, offset: float = 0.0) -> None:
        self.weights = array("d", weights or bytes(8 * SIZE))
        self.offset = offset

    def score(self, window: Window) -> float:
        """The log-odds of one window."""
        weights = self.weights
        return self.offset + sum([weights[at] for at in window]) / math.sqrt(len(window) + 1)

    def worst(self, bag: Bag) -> float:
        """The log-odds of a prompt: those of its worst window."""
        return max(map(self.score, bag.windows))


def fit(bags: Sequence[Bag]) -> Model:
    """The model of these prompts."""
    many = Counter((bag.source, bag.attack) for bag in bags)
    model = Model()
    for look in range(LOOKS + 1):
        examples = [
            example
            for bag in bags
            for example in _examples(bag, model if look else None, many[bag.source, bag.attack] ** -0.25)
        ]
        model = _descend(model, examples, look)
    return model


def _examples(bag: Bag, model: Model | None, weight: float) -> list[Example]:
    """All windows of a benign prompt; of an attack all at first, then the one that looks worst."""
    share = 1 / len(bag.windows)
    if not bag.attack:
        return [Example(window, False, weight * max(share, 0.3)) for window in bag.windows]
    if model is None:
        return [Example(window, True, weight * share) for window in (*bag.windows, *bag.elsewhere)]
    chosen = [max(place, key=model.score) for place in (bag.windows, bag.elsewhere) if place]
    return [Example(window, True, weight * (1.0, 0.3)[at]) for at, window in enumerate(chosen)]


def _descend(model: Model, examples: list[Example], look: int) -> Model:
    """Stochastic gradient descent with weight decay; the last half of the steps is averaged."""
    mass = Counter[bool]()
    for example in examples:
        mass[example.attack] += example.weight  # type: ignore[assignment]
    balance = {side: 0.5 * len(examples) / mass[side] for side in (True, False)}
    order = random.Random(look)
    weights, offset, scale, step = array("d", model.weights), model.offset, 1.0, 0
    total, total_offset, taken = array("d", bytes(8 * SIZE)), 0.0, 0
    for epoch in range(EPOCHS):
        order.shuffle(examples)
        for example in examples:
            window = example.window
            step += 1
            value = 1 / math.sqrt(len(window) + 1)
            margin = offset + scale * value * sum([weights[at] for at in window])
            rate = RATE / (1 + RATE * DECAY * step)
            scale *= 1 - rate * DECAY
            error = example.attack - 1 / (1 + math.exp(-max(-30.0, min(30.0, margin))))
            change = rate * error * min(3.0, example.weight * balance[example.attack])
            offset += 0.05 * change
            change *= value / scale
            for at in window:
                weights[at] += change
        if epoch >= EPOCHS // 2:
            total = array("d", (sum_ + scale * weight for sum_, weight in zip(total, weights, strict=True)))
            total_offset += offset
            taken += 1
    return Model((sum_ / taken for sum_ in total), total_offset / taken)


def weights_of_fold(number: int) -> Path:
    """Where the weights are that never saw a fold."""
    return ROOT / "training" / "folds" / f"ngrams_{number}.bin"


def blind_readers(sources: Iterable[str]) -> dict[str, NgramReader]:
    """For every source a reader that never saw it: the shipped one where it was not trained on it."""
    readers = dict.fromkeys(sources, NgramReader())
    for number, fold in enumerate(labelled_folds()):
        reader = NgramReader(NgramModel(weights_of_fold(number).read_bytes()))
        readers.update({source: reader for source in fold if source in readers})
    return readers


def fit_types(bags: Sequence[Bag], model: Model) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Weights and offsets of the types: the worst window of each attack whose type is known."""
    typed = [bag for bag in bags if bag.kind is not None]
    many = Counter(bag.kind for bag in typed)
    worst = [max(bag.windows, key=model.score) for bag in typed]
    rows = [np.array(type_places(window), np.intp) for window in worst]
    kinds = [LEARNT_TYPES.index(bag.kind or "") for bag in typed]
    weights = np.zeros((TYPE_SIZE, len(LEARNT_TYPES)))
    offsets = np.zeros(len(LEARNT_TYPES))
    total, total_offsets = np.zeros_like(weights), np.zeros_like(offsets)
    order = list(range(len(typed)))
    chance = random.Random(1)
    for epoch in range(TYPE_EPOCHS):
        chance.shuffle(order)
        rate = TYPE_RATE * (1 - epoch / TYPE_EPOCHS)
        for at in order:
            places = rows[at]
            value = 1 / math.sqrt(len(places) + 1)
            scores = offsets + weights[places].sum(0) * value
            error = np.exp(scores - scores.max())
            error /= -error.sum()
            error[kinds[at]] += 1
            step = rate * error * math.sqrt(len(typed) / len(many) / many[typed[at].kind])
            weights[places] += step * value
            offsets += 0.05 * step
        weights *= 1 - TYPE_DECAY * rate * 10
        if epoch >= TYPE_EPOCHS // 2:
            total += weights
            total_offsets += offsets
    taken = TYPE_EPOCHS - TYPE_EPOCHS // 2
    return (total / taken).astype(np.float32), (total_offsets / taken).astype(np.float32)


def left_out(bags: Sequence[Bag], models: Iterable[tuple[frozenset[str], Model]]) -> list[tuple[float, Bag]]:
    """Each prompt's score by the model that never saw its source."""
    return [(model.worst(bag), bag) for fold, model in models for bag in bags if bag.source in fold]


def calibrate(scored: Sequence[tuple[float, Bag]]) -> tuple[float, float]:
    """Slope and offset that turn a score into a probability.

    The slope is Platt's, by Newton's method; the offset puts the alarm where few benign prompts reach it.
    """
    slope, offset = 1.0, 0.0
    for _ in range(50):
        g0 = g1 = h00 = h01 = h11 = 1e-9
        for score, bag in scored:
            p = 1 / (1 + math.exp(-max(-30.0, min(30.0, slope * score + offset))))
            error, weight = p - bag.attack, p * (1 - p) + 1e-9
            g0, g1 = g0 + error * score, g1 + error
            h00, h01, h11 = h00 + weight * score * score, h01 + weight * score, h11 + weight
        det = h00 * h11 - h01 * h01
        slope, offset = slope - (h11 * g0 - h01 * g1) / det, offset - (h00 * g1 - h01 * g0) / det
    slope *= SHARPER
    benign = sorted((score for score, bag in scored if not bag.attack), reverse=True)
    return slope, math.log(ALARM / (1 - ALARM)) + RESERVE - slope * benign[int(FALSE_ALARMS * len(benign))]


def main() -> None:
    """Train, report, and write the weights."""
    parser = argparse.ArgumentParser(
        prog="python -m training.ngrams",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="print the figures, write nothing")
    options = parser.parse_args()
    records = [*development(), *further(), *latest()]
    bags, ours = bags_of(records), bags_of([*authored(), *twins()])
    dealt = labelled_folds()
    models = [fit([*(bag for bag in bags if bag.source not in fold), *ours]) for fold in dealt]
    scored = left_out(bags, zip(dealt, models, strict=True))
    slope, offset = calibrate(scored)
    _report(scored, slope, offset)
    packed = []
    for fold, model in zip((*dealt, frozenset[str]()), (*models, fit([*bags, *ours])), strict=True):
        known = [*(bag for bag in bags if bag.source not in fold), *ours]
        packed.append(pack(model.weights, (model.offset, slope, offset), *fit_types(known, model)))
    _report_types(records, dealt, packed)
    if options.check:
        return
    for number, data in enumerate(packed[:-1]):
        weights_of_fold(number).write_bytes(data)
    (VOICES / "learned" / WEIGHTS_FILE).write_bytes(packed[-1])
    print(f"wrote {WEIGHTS_FILE}: {len(packed[-1]):,} bytes")


def _report_types(
    records: Iterable[Record], dealt: Sequence[frozenset[str]], packed: Sequence[bytes]
) -> None:
    readers = [NgramReader(NgramModel(data)) for data in packed]
    right: dict[str, list[bool]] = {}
    for record in records:
        if (kind := type_of(record)) is not None:
            reader = next(r for r, fold in zip(readers, dealt, strict=False) if record.source in fold)
            found = reader.find(read_prompt(record.prompt))
            right.setdefault(kind, []).append(bool(found) and found[0].pattern == kind)
    every = [each for kind in right.values() for each in kind]
    print(f"type of the worst window right in {sum(every)} of {len(every)} attacks of sources it never saw")
    for kind, hits in sorted(right.items()):
        print(f"  {kind}: {sum(hits)} of {len(hits)}")


def _report(scored: Sequence[tuple[float, Bag]], slope: float, offset: float) -> None:
    print("Each prompt scored by a model that never saw its source:")
    for name, each in (("dev", development), ("dev2", further), ("dev3", latest)):
        sources = {record.source for record in each()}
        part = [(slope * score + offset - RESERVE, bag) for score, bag in scored if bag.source in sources]
        figures = performance(
            ["attack" if bag.attack else "benign" for _, bag in part],
            [score for score, _ in part],
            math.log(ALARM / (1 - ALARM)),
            resample=False,
        )
        print(
            f"  {name}: {len(part)} prompts, AUC {figures.auc.value:.3f};"
            f" at {ALARM} {figures.at_threshold.recall.value:.1%} of attacks,"
            f" {figures.at_threshold.false_alarm_rate.value:.1%} of benign prompts"
        )


if __name__ == "__main__":
    main()
