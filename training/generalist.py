"""Fit `embedded:generalist`: `python -m training.generalist` writes voices/embedded/learned/generalist.json.

Every lens judges the development prompts of all sources; the n-grams are represented by models that never
saw the source of the prompt (for dev.jsonl they are trained here first, a minute or two; the shipped ones
never saw dev2.jsonl). A logistic regression over the lenses' log-odds, weights never below zero and both
labels weighing the same, makes one probability of them. What is printed comes from weights that never saw
the source either. The same data gives the same numbers. With `--check` nothing is written.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from firecircle.lab.datasets import Record
from firecircle.lab.statistics import performance
from firecircle.voices.embedded import embedded_voice
from firecircle.voices.embedded.generalist import WEIGHTS_FILE, Weights, log_odds
from firecircle.voices.embedded.language.prompt_reading import read_prompt
from firecircle.voices.embedded.learned.ngrams import NgramLens, NgramModel, pack
from firecircle.voices.embedded.lenses.findings import Lens, falsehood
from firecircle.voices.embedded.voice import STRENGTHS, EmbeddedVoice
from training import VOICES
from training.labelled import ALARM, development, further, is_attack
from training.ngrams import bags_of, calibrate, fitted_without, left_out

Numbers = NDArray[np.float64]
RULES = ("time", "layers", "hidden", "extraction", "authority")
FOLDS = 4
PULL = 0.01
"""How strongly weights are pulled towards zero."""


def falsehood_of(lens: Lens, record: Record) -> float:
    """What a lens says of a prompt before anybody talked."""
    findings = lens.find(read_prompt(record.prompt))
    return falsehood(finding for finding in findings if finding.strength >= STRENGTHS.least)


def lens_called(name: str) -> Lens:
    """A lens of the package."""
    voice = embedded_voice(f"embedded:{name}")
    assert isinstance(voice, EmbeddedVoice)
    return voice.lens


def blind_ngrams(records: Sequence[Record]) -> dict[str, Lens]:
    """For every source an n-gram lens that never saw it: the shipped one where it was not trained on it."""
    bags = bags_of(development())
    models = fitted_without(bags)
    calibration = calibrate(left_out(bags, models))
    shipped = lens_called("ngrams")
    lenses: dict[str, Lens] = {record.source: shipped for record in records}
    for fold, model in models:
        lens = NgramLens(NgramModel(pack(model.weights, model.offset, *calibration)))
        lenses.update(dict.fromkeys(fold, lens))
    return lenses


def said_by_lenses(records: Sequence[Record]) -> list[dict[str, float]]:
    """The falsehood of each lens for each record."""
    rules = {name: lens_called(name) for name in RULES}
    ngrams = blind_ngrams(records)
    return [
        {
            **{name: falsehood_of(lens, record) for name, lens in rules.items()},
            "ngrams": falsehood_of(ngrams[record.source], record),
        }
        for record in records
    ]


def fit(said: Sequence[Mapping[str, float]], attack: NDArray[np.bool_], share: Numbers) -> Weights:
    """The weights: Newton's method; a lens whose weight would be negative is left out."""
    names = list(said[0])
    rows = np.array([[*(log_odds(each[name]) for name in names), 1.0] for each in said])
    share = share * np.where(attack, 0.5 / share[attack].sum(), 0.5 / share[~attack].sum())
    weights = np.zeros(rows.shape[1])
    free = np.ones(rows.shape[1], bool)
    ridge = np.append(np.full(len(names), PULL), 0.0)
    while True:
        for _ in range(50):
            chance = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
            slope = rows.T @ (share * (chance - attack)) + ridge * weights
            bend = (rows * (share * chance * (1 - chance) + 1e-9)[:, None]).T @ rows + np.diag(ridge)
            weights[free] -= np.linalg.solve(bend[np.ix_(free, free)], slope[free])
        negative = free & (weights < 0) & (np.arange(len(weights)) < len(names))
        if not negative.any():
            lenses = {name: round(float(weight), 4) for name, weight in zip(names, weights, strict=False)}
            return Weights(lenses, round(float(weights[-1]), 4))
        free &= ~negative
        weights[negative] = 0.0


def folds(records: Sequence[Record]) -> list[frozenset[str]]:
    """The sources dealt into folds, the largest first, so that each fold has attacks and benign prompts."""
    size = Counter(record.source for record in records)
    dealt: list[set[str]] = [set() for _ in range(FOLDS)]
    for source, _ in sorted(size.items(), key=lambda item: (-item[1], item[0])):
        min(dealt, key=lambda fold: (sum(size[name] for name in fold), sorted(fold))).add(source)
    return list(map(frozenset, dealt))


def shares(records: Sequence[Record]) -> Numbers:
    """How much each record counts: sources by the square root of their size."""
    size = Counter(record.source for record in records)
    return np.array([size[record.source] ** -0.5 for record in records])


def left_out_falsehood(records: Sequence[Record], said: Sequence[Mapping[str, float]]) -> list[float]:
    """What weights that never saw a record's source make of it."""
    attack, share = np.array(list(map(is_attack, records))), shares(records)
    together: dict[int, float] = {}
    for fold in folds(records):
        seen = [at for at, record in enumerate(records) if record.source not in fold]
        weights = fit([said[at] for at in seen], attack[seen], share[seen])
        together.update(
            (at, weights.falsehood(said[at])) for at, record in enumerate(records) if record.source in fold
        )
    return [together[at] for at in range(len(records))]


def report(name: str, records: Sequence[Record], scores: Sequence[float]) -> None:
    """One line of figures."""
    figures = performance([record.label for record in records], scores, ALARM, resample=False)
    print(
        f"  {name:16} {len(records):5} prompts  AUC {figures.auc.value:.3f}"
        f"  recall {figures.recall_at_1_percent.value:.2f} at 1% FPR,"
        f" {figures.recall_at_5_percent.value:.2f} at 5%;"
        f" at {ALARM} {figures.at_threshold.recall.value:.1%} of attacks,"
        f" {figures.at_threshold.false_alarm_rate.value:.1%} of benign prompts"
    )


def main() -> None:
    """Fit, report, write."""
    parser = argparse.ArgumentParser(
        prog="python -m training.generalist",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="print the figures, write nothing")
    options = parser.parse_args()
    sets = {"dev": development(), "dev2": further()}
    records = [record for part in sets.values() for record in part]
    said = said_by_lenses(records)
    together = left_out_falsehood(records, said)
    print("Weights that never saw the source:")
    for name, part in sets.items():
        ids = {record.id for record in part}
        chosen = [at for at, record in enumerate(records) if record.id in ids]
        report(name, [records[at] for at in chosen], [together[at] for at in chosen])
    weights = fit(said, np.array(list(map(is_attack, records))), shares(records))
    print(weights)
    if not options.check:
        path = VOICES / "learned" / WEIGHTS_FILE
        shipped = [{"lenses": dict(weights.lenses), "offset": weights.offset}]
        path.write_text(json.dumps(shipped, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {WEIGHTS_FILE}")


if __name__ == "__main__":
    main()
