"""Train the neural voice: `python -m training.neural` writes voices/embedded/learned/neural.npz.

Two models read each window, the tuned sentence model (`training.tuned`) and a network over a multilingual one
(`training.broad`); what they say is calibrated together. Trained are dev.jsonl, dev2.jsonl and the texts
written for this project (training/data). Figures and calibration come from models that never saw the source
of the prompt they score: the sources are dealt into folds, and the head of each is kept in training/folds, so
that `bench.detection`, `training.generalist` and others can ask a voice that is blind to a source.

Needs torch, in an environment of its own (the product runs the numbers with numpy), the extras `neural` and
`lab`, and ../shared/data. Three folds and the whole take about forty minutes on one core. `--folds-only` and
`--whole-only` do one of the two.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from firecircle.lab.datasets import Record
from firecircle.lab.statistics import performance
from firecircle.lab.statistics.cross_validation import strictest_needed
from firecircle.lab.statistics.estimate import numbers
from firecircle.languages import unread_languages
from firecircle.voices.embedded.learned.head import WEIGHTS_FILE, Head, Judge, Judged
from training import VOICES, broad, tuned
from training.generalist import logistic
from training.labelled import (
    ALARM,
    MULTILINGUAL,
    authored,
    development,
    further,
    is_attack,
    multilingual,
    shares,
    sources_dealt,
    written_pairs,
)
from training.neural_folds import NUMBER_OF_FOLDS, head_of_fold

FALSE_ALARMS = 0.02
"""The share of benign prompts of unseen sources that may reach the alarm with this voice alone."""
UNCALIBRATED = np.array([1.0, 0.0, 0.0, 1.0, 0.0], np.float32)


def heads(records: Sequence[Record], folds: Sequence[frozenset[str]]) -> None:
    """Train a head without each fold of sources, and one with all of them where the fold is empty."""
    model, words = tuned.untuned()
    english = [record for record in records if not record.source.startswith(MULTILINGUAL)]
    bags = tuned.bags_of(english, model, words)
    prompts = broad.read(records)
    print(f"{len(bags)} prompts are ready, {time.process_time():.0f} s", flush=True)
    for number, fold in enumerate(folds):
        tuned.train([bag for bag in bags if bag.record.source not in fold], 1, model)
        hidden, read = broad.train([prompt for prompt in prompts if prompt.record.source not in fold])
        head = Head(
            **tuned.numbers_of(model),
            broad_hidden=hidden.astype(np.float16),
            broad_read=read.astype(np.float32),
            calibration=UNCALIBRATED,
        )
        head.save(head_of_fold(number) if fold else VOICES / "learned" / WEIGHTS_FILE)
        print(f"{'fold ' + str(number) if fold else 'the whole'}: {time.process_time():.0f} s", flush=True)


def blind_windows(records: Sequence[Record], folds: Sequence[frozenset[str]]) -> list[Judged | None]:
    """For each prompt the window that both models together find worst, read by those of its fold."""
    judges = [Judge(Head.load(head_of_fold(number))) for number in range(len(folds))]
    worst = []
    for record in records:
        judge = next(judge for judge, fold in zip(judges, folds, strict=True) if record.source in fold)
        windows = judge.open(record.prompt).judged()
        worst.append(max(windows, key=lambda window: (window.tuned or 0.0) + window.broad, default=None))
    return worst


def calibrated(records: Sequence[Record], windows: Sequence[Judged | None]) -> np.ndarray:
    """From scores to log-odds, for English and for other languages: a logistic regression on prompts of
    unseen sources, its offset such that few benign ones reach the alarm."""
    found: list[float] = []
    for foreign in (False, True):
        part = [
            (record, window)
            for record, window in zip(records, windows, strict=True)
            if window is not None and (window.tuned is None) is foreign
        ]
        rows = np.array([[w.broad] if w.tuned is None else [w.tuned, w.broad] for _, w in part])
        attack = np.array([is_attack(record) for record, _ in part])
        weights = logistic(rows, attack, shares([record for record, _ in part]))[:-1]
        edge = strictest_needed(numbers((rows @ weights)[~attack].tolist()), FALSE_ALARMS)
        found += [*weights, math.log(ALARM / (1 - ALARM)) - edge]
    return np.array(found, np.float32)


def report(records: Sequence[Record], windows: Sequence[Judged | None], calibration: np.ndarray) -> None:
    """Figures for each set and each kind of language."""
    known, later = ({record.source for record in each()} for each in (development, further))
    sets: dict[str, Callable[[Record], bool]] = {
        "dev.jsonl": lambda record: record.source in known,
        "dev2.jsonl": lambda record: record.source in later,
        "in other languages": lambda record: bool(unread_languages(record.prompt)),
    }
    strengths = [
        replace(window, head=replace(window.head, calibration=calibration)).strength if window else 0.0
        for window in windows
    ]
    for name, belongs in sets.items():
        part = [at for at, record in enumerate(records) if belongs(record)]
        figures = performance(
            [records[at].label for at in part], [strengths[at] for at in part], ALARM, resample=False
        )
        print(
            f"{name}: {len(part)} prompts of sources it never saw, AUC {figures.auc.value:.3f},"
            f" recall {figures.recall_at_1_percent.value:.2f} at 1% FPR,"
            f" {figures.recall_at_5_percent.value:.2f} at 5%; at {ALARM}"
            f" {figures.at_threshold.recall.value:.1%} of attacks,"
            f" {figures.at_threshold.false_alarm_rate.value:.1%} of benign prompts"
        )


def main() -> None:
    """Train, report, write."""
    parser = argparse.ArgumentParser(
        prog="python -m training.neural",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--folds-only", action="store_true", help="train the heads of the folds, no other")
    parser.add_argument("--whole-only", action="store_true", help="train the shipped head, no other")
    parser.add_argument("--calibrate-only", action="store_true", help="train nothing; use what is kept")
    options = parser.parse_args()
    torch.set_num_threads(1)
    scored = [*development(), *further(), *multilingual()]
    folds = sources_dealt(scored, NUMBER_OF_FOLDS)
    every = [*scored, *authored(), *written_pairs()]
    if not options.calibrate_only:
        wanted = ([] if options.whole_only else [*folds]) + ([] if options.folds_only else [frozenset()])
        heads(every, wanted)
    if options.folds_only:
        return
    windows = blind_windows(scored, folds)
    calibration = calibrated(scored, windows)
    report(scored, windows, calibration)
    for path in (*(head_of_fold(number) for number in range(len(folds))), VOICES / "learned" / WEIGHTS_FILE):
        replace(Head.load(path), calibration=calibration).save(path)
    print(f"wrote {WEIGHTS_FILE}: {(VOICES / 'learned' / WEIGHTS_FILE).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
