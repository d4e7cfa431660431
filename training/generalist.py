"""Fit `embedded:generalist`: `python -m training.generalist` writes voices/embedded/learned/generalist.json.

Every lens judges the development prompts of all sources; the learned ones are represented by models that
never saw the source of the prompt. The n-grams of dev.jsonl are trained here first, a minute or two (the
shipped ones never saw dev2.jsonl); the neural lenses are those that `training.neural` kept. A logistic
regression over the lenses' log-odds, weights never below zero and both labels weighing the same, makes one
probability of them. What is printed comes from weights that never saw the source either. The same data gives
the same numbers. With `--check` nothing is written.
"""

from __future__ import annotations

import argparse
import json
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
from training.labelled import ALARM, development, further, is_attack, shares, sources_dealt
from training.neural_folds import blind_lenses
from training.ngrams import bags_of, calibrate, fitted_without, left_out

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
RULES = ("time", "layers", "hidden", "extraction", "authority")
NEURAL = "neural"
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
    """The falsehood of each lens for each record; learned lenses that never saw its source."""
    lenses = {name: lens_called(name) for name in RULES}
    blind: dict[str, Mapping[str, Lens]] = {"ngrams": blind_ngrams(records), NEURAL: blind_lenses(records)}
    return [
        {
            **{name: falsehood_of(lens, record) for name, lens in lenses.items()},
            **{name: falsehood_of(by_source[record.source], record) for name, by_source in blind.items()},
        }
        for record in records
    ]


def without_neural(said: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """The same without the neural lens, which is not installed everywhere."""
    return [{name: f for name, f in words.items() if name != NEURAL} for words in said]


def fit(said: Sequence[Mapping[str, float]], attack: Flags, share: Numbers) -> Weights:
    """The weights of the lenses; one whose weight would be negative counts nothing."""
    names = [name for name in said[0] if name != NEURAL]
    rows = np.array([[log_odds(each[name]) for name in names] for each in said])
    weights = logistic(rows, attack, share)
    lenses = {name: round(float(weight), 4) for name, weight in zip(names, weights, strict=False)}
    return Weights(lenses, round(float(weights[-1]), 4))


def fit_with_neural(
    others: Weights, said: Sequence[Mapping[str, float]], attack: Flags, share: Numbers
) -> Weights:
    """The neural lens counts as much as all others together; only scale and offset of the sum are fitted.

    A weight of its own, fitted to the few sources it never saw, differs from fold to fold and ranks worse.
    """
    rows = np.array([[others.score(each) + log_odds(each[NEURAL])] for each in said])
    scale, offset = logistic(rows, attack, share)
    lenses = {name: round(float(scale * weight), 4) for name, weight in others.lenses.items()}
    whole = scale * others.offset + offset
    return Weights({**lenses, NEURAL: round(float(scale), 4)}, round(float(whole), 4))


def logistic(rows: Numbers, attack: Flags, share: Numbers) -> Numbers:
    """Weights, none below zero, and the offset: Newton's method, both labels weighing the same."""
    share = share * np.where(attack, 0.5 / share[attack].sum(), 0.5 / share[~attack].sum())
    rows = np.hstack([rows, np.ones((len(rows), 1))])
    weights, free = np.zeros(rows.shape[1]), np.ones(rows.shape[1], bool)
    ridge = np.append(np.full(rows.shape[1] - 1, PULL), 0.0)
    while True:
        for _ in range(50):
            chance = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
            slope = rows.T @ (share * (chance - attack)) + ridge * weights
            bend = (rows * (share * chance * (1 - chance) + 1e-9)[:, None]).T @ rows + np.diag(ridge)
            weights[free] -= np.linalg.solve(bend[np.ix_(free, free)], slope[free])
        negative = free & (weights < 0)
        negative[-1] = False
        if not negative.any():
            return weights
        free &= ~negative
        weights[negative] = 0.0


def fitted(records: Sequence[Record], said: Sequence[Mapping[str, float]]) -> tuple[Weights, Weights | None]:
    """The weights of these records without the neural lens and with it, where any record has its word."""
    attack, share = np.array(list(map(is_attack, records))), shares(records)
    weights = fit(said, attack, share)
    heard = [at for at, words in enumerate(said) if NEURAL in words]
    if not heard:
        return weights, None
    return weights, fit_with_neural(weights, [said[at] for at in heard], attack[heard], share[heard])


def left_out_falsehood(records: Sequence[Record], said: Sequence[Mapping[str, float]]) -> list[float]:
    """What weights that never saw a record's source make of it; with the neural lens where it has spoken."""
    together: dict[int, float] = {}
    for fold in sources_dealt(records, FOLDS):
        seen = [at for at, record in enumerate(records) if record.source not in fold]
        without, with_neural = fitted([records[at] for at in seen], [said[at] for at in seen])
        for at, record in enumerate(records):
            if record.source in fold:
                weights = with_neural if with_neural and NEURAL in said[at] else without
                together[at] = weights.falsehood(said[at])
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
    known, new = development(), further()
    records = [*known, *new]
    said = said_by_lenses(records)
    shipped = [weights for weights in fitted(records, said) if weights]
    six = left_out_falsehood(records, without_neural(said))
    seven = left_out_falsehood(records, said)[len(known) :]
    print("Weights that never saw the source:")
    report("dev, 6 lenses", known, six[: len(known)])
    report("dev2, 6 lenses", new, six[len(known) :])
    report("dev2, 7 lenses", new, seven)
    print(*shipped, sep="\n")
    if not options.check:
        path = VOICES / "learned" / WEIGHTS_FILE
        both = [{"lenses": dict(weights.lenses), "offset": weights.offset} for weights in shipped]
        path.write_text(json.dumps(both, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {WEIGHTS_FILE}")


if __name__ == "__main__":
    main()
