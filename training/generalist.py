"""Fit `embedded:generalist`: `python -m training.generalist` writes voices/embedded/learned/generalist.json.

Every lens judges the development prompts of all sources; the learned ones are represented by models that
never saw the source of the prompt, which `training.ngrams` and `training.neural` kept. A logistic regression
over the soft maximum of the lenses' log-odds, both labels weighing the same, makes a probability of it. What
is printed comes from a fit that never saw the source either. The same data gives the same numbers. With
`--check` nothing is written.
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
from firecircle.voices.embedded.generalist import FUSION_FILE, Fusion, soft_maximum
from firecircle.voices.embedded.language.prompt_reading import read_prompt
from firecircle.voices.embedded.lenses.findings import Lens, falsehood
from firecircle.voices.embedded.voice import EmbeddedVoice
from training import VOICES, neural_folds, ngrams
from training.labelled import ALARM, development, further, is_attack, shares, sources_dealt

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
RULES = ("time", "layers", "hidden", "extraction", "authority")
NEURAL = "neural"
FOLDS = 4
PULL = 0.01
"""How strongly weights are pulled towards zero."""


def falsehood_of(lens: Lens, record: Record) -> float:
    """What a lens says of a prompt before anybody talked."""
    return falsehood(lens.find(read_prompt(record.prompt)))


def lens_called(name: str) -> Lens:
    """A lens of the package."""
    voice = embedded_voice(f"embedded:{name}")
    assert isinstance(voice, EmbeddedVoice)
    return voice.lens


def said_by_lenses(records: Sequence[Record]) -> list[dict[str, float]]:
    """The falsehood of each lens for each record; learned lenses that never saw its source."""
    lenses = {name: lens_called(name) for name in RULES}
    blind: dict[str, Mapping[str, Lens]] = {
        "ngrams": ngrams.blind_lenses(),
        NEURAL: neural_folds.blind_lenses(records),
    }
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


def fit(records: Sequence[Record], said: Sequence[Mapping[str, float]]) -> Fusion:
    """Scale and offset of what these lenses say together."""
    rows = np.array([[soft_maximum(words.values())] for words in said])
    scale, offset = logistic(rows, np.array(list(map(is_attack, records))), shares(records))
    return Fusion(round(float(scale), 4), round(float(offset), 4))


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


def left_out_falsehood(records: Sequence[Record], said: Sequence[Mapping[str, float]]) -> list[float]:
    """What fits that never saw a record's source make of it."""
    together: dict[int, float] = {}
    for fold in sources_dealt(records, FOLDS):
        seen = [at for at, record in enumerate(records) if record.source not in fold]
        fusion = fit([records[at] for at in seen], [said[at] for at in seen])
        together |= {
            at: fusion.falsehood(said[at]) for at, record in enumerate(records) if record.source in fold
        }
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
    shipped = []
    print("A fit that never saw the source:")
    for words in (without_neural(said), said):
        scores, lenses = left_out_falsehood(records, words), list(words[0])
        report(f"dev, {len(lenses)} lenses", known, scores[: len(known)])
        report(f"dev2, {len(lenses)} lenses", new, scores[len(known) :])
        fusion = fit(records, words)
        shipped.append({"lenses": lenses, "scale": fusion.scale, "offset": fusion.offset})
    print(*shipped, sep="\n")
    if not options.check:
        path = VOICES / "learned" / FUSION_FILE
        path.write_text(json.dumps(shipped, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {FUSION_FILE}")


if __name__ == "__main__":
    main()
