"""Train the statistical voice: `python -m training.ngrams` writes voices/embedded/learned/ngrams.bin.

Needs the extra `lab`, ../shared/data/dev.jsonl and training/data/authored_*.jsonl (written for this project,
always trained on and never scored); the same data gives the same bytes. Pairs that differ only in what they
mean teach a bag of words nothing, and long documents make it suspect short requests (decision 090).

A logistic regression over hashed n-grams is fitted to windows of text: every window of a benign prompt is
benign, and of an attack the window that looks worst so far (a long prompt is mostly filler). An attack in the
user's words is an attack in a document too, so each is shown in both layers.

What is printed, and what calibrates the voice, comes from models that never saw the source of the prompt they
score: the sources are dealt into folds, the first of which holds the five that no rule was written on. Their
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

from firecircle.lab.datasets import Record
from firecircle.lab.statistics import performance
from firecircle.voices.embedded.language.text import Sentence, sentences
from firecircle.voices.embedded.learned.ngrams import (
    SIZE,
    WEIGHTS_FILE,
    NgramLens,
    NgramModel,
    features,
    pack,
    windows,
)
from training import ROOT, VOICES
from training.labelled import ALARM, UNSEEN, authored, development, further, is_attack

FOLDS = 6
"""Into how many more folds the other sources are dealt."""

EPOCHS = 12
DECAY = 2e-4
RATE = 4.0
LOOKS = 2
"""How often the worst window of each attack is chosen anew."""
FALSE_ALARMS, EDGE = 0.01, 0.34
"""The share of benign prompts from sources never seen that may pass this probability. It lies far below the
alarm: the circle takes the maximum of its voices, and what this one suspects the dialogue can confirm."""

Window: TypeAlias = "array[int]"


@dataclass(frozen=True, slots=True)
class Bag:
    """One prompt as the features of its windows; `elsewhere` are those of an attack as if in a document."""

    source: str
    attack: bool
    windows: tuple[Window, ...]
    elsewhere: tuple[Window, ...] = ()


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
            bags.append(Bag(record.source, attack, seen, elsewhere))
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


def folds(records: Iterable[Record]) -> list[frozenset[str]]:
    """The sources, dealt into folds: the unseen five, then the others, the largest first."""
    size = Counter(record.source for record in records if record.source not in UNSEEN)
    dealt: list[set[str]] = [set() for _ in range(FOLDS)]
    for source, _ in sorted(size.items(), key=lambda item: (-item[1], item[0])):
        min(dealt, key=lambda fold: (sum(size[name] for name in fold), sorted(fold))).add(source)
    return [frozenset(UNSEEN), *map(frozenset, dealt)]


def weights_of_fold(number: int) -> Path:
    """Where the weights are that never saw a fold."""
    return ROOT / "training" / "folds" / f"ngrams_{number}.bin"


def blind_lenses() -> dict[str, NgramLens]:
    """For every source of dev.jsonl and dev2.jsonl a lens that never saw it: of the latter, the shipped."""
    lenses = dict.fromkeys((record.source for record in further()), NgramLens())
    for number, fold in enumerate(folds(development())):
        lens = NgramLens(NgramModel(weights_of_fold(number).read_bytes()))
        lenses.update(dict.fromkeys(fold, lens))
    return lenses


def left_out(bags: Sequence[Bag], models: Iterable[tuple[frozenset[str], Model]]) -> list[tuple[float, Bag]]:
    """Each prompt's score by the model that never saw its source."""
    return [(model.worst(bag), bag) for fold, model in models for bag in bags if bag.source in fold]


def calibrate(scored: Sequence[tuple[float, Bag]]) -> tuple[float, float]:
    """Slope and offset that turn a score into a probability.

    The slope is Platt's, by Newton's method; the offset puts `EDGE` where few benign prompts reach it.
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
    benign = sorted((score for score, bag in scored if not bag.attack), reverse=True)
    return slope, math.log(EDGE / (1 - EDGE)) - slope * benign[int(FALSE_ALARMS * len(benign))]


def main() -> None:
    """Train, report, and write the weights."""
    parser = argparse.ArgumentParser(
        prog="python -m training.ngrams",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="print the figures, write nothing")
    options = parser.parse_args()
    records = development()
    bags, ours = bags_of(records), bags_of(authored())
    dealt = folds(records)
    models = [fit([*(bag for bag in bags if bag.source not in fold), *ours]) for fold in dealt]
    scored = left_out(bags, zip(dealt, models, strict=True))
    slope, offset = calibrate(scored)
    _report(scored, slope, offset)
    if options.check:
        return
    for number, model in enumerate(models):
        weights_of_fold(number).write_bytes(pack(model.weights, model.offset, slope, offset))
    whole = fit([*bags, *ours])
    data = pack(whole.weights, whole.offset, slope, offset)
    (VOICES / "learned" / WEIGHTS_FILE).write_bytes(data)
    print(f"wrote {WEIGHTS_FILE}: {len(data):,} bytes")


def _report(scored: Sequence[tuple[float, Bag]], slope: float, offset: float) -> None:
    print("Each prompt scored by a model that never saw its source:")
    for name, unseen in (("five sources that no rule was written on", True), ("all other sources", False)):
        part = [(slope * score + offset, bag) for score, bag in scored if (bag.source in UNSEEN) is unseen]
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
