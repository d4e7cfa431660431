"""Train the neural voice: `python -m training.neural` writes voices/embedded/learned/neural.npz.

Two models read each window, the tuned sentence model (`training.tuned`) and a network over a multilingual one
(`training.broad`); what they say is calibrated together. Trained are dev.jsonl, dev2.jsonl, the texts written
for this project (training/data) and passages of manuals (`training.manuals` fetches them). Figures and
calibration come from models that never saw the source of the prompt they score: the sources are dealt into
folds, and the head of each is kept in training/folds, so that `bench.detection`, `training.generalist` and
others can ask a voice that is blind to a source.

Needs torch, in an environment of its own (the product runs the numbers with numpy), the extras `neural` and
`lab`, and ../shared/data. Three folds and the whole take about forty minutes on one core. `--folds-only` and
`--whole-only` do one of the two, `--broad-only` leaves the tuned model as it is.
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
from firecircle.voices.embedded.learned.encoder import Encoder, weights_folder
from firecircle.voices.embedded.learned.head import WEIGHTS_FILE, Head, Judge, Judged, fingerprint
from training import VOICES, broad, tuned
from training.generalist import logistic
from training.labelled import (
    ALARM,
    DOCUMENTS,
    MULTILINGUAL,
    authored,
    development,
    documents,
    further,
    is_attack,
    multilingual,
    shares,
    small_talk,
    sources_dealt,
    written_pairs,
)
from training.manuals import MANUAL, TRAINED, harmless, with_orders
from training.neural_folds import NUMBER_OF_FOLDS, head_of_fold

FALSE_ALARMS = 0.015
"""The share of benign prompts of unseen sources that may reach the alarm with this voice alone."""
UNCALIBRATED = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)


def heads(records: Sequence[Record], folds: Sequence[frozenset[str]]) -> None:
    """Train a head without each fold of sources, and one with all of them where the fold is empty.

    Each is the mean of two: taught with long documents the models tell orders for people from orders for a
    model, and lose a little elsewhere; without them it is the other way round.
    """
    model, words = tuned.untuned()
    english = [record for record in records if not record.source.startswith(MULTILINGUAL)]
    bags = tuned.bags_of(english, model, words)
    prompts = broad.read(records)
    print(f"{len(bags)} prompts are ready, {time.process_time():.0f} s", flush=True)
    for number, fold in enumerate(folds):
        trained = []
        for left_out in ((MANUAL, DOCUMENTS), ()):
            seen = {record.source for record in records if not record.source.startswith(left_out)} - fold
            tuned.train([bag for bag in bags if bag.record.source in seen], 1, model)
            hidden, read = broad.train([prompt for prompt in prompts if prompt.record.source in seen])
            numbers_of_both = {**tuned.numbers_of(model), "broad_hidden": hidden, "broad_read": read}
            trained.append(Head(**numbers_of_both, calibration=UNCALIBRATED))
        averaged(trained).save(head_of_fold(number) if fold else VOICES / "learned" / WEIGHTS_FILE)
        print(f"{'fold ' + str(number) if fold else 'the whole'}: {time.process_time():.0f} s", flush=True)


def broad_heads(records: Sequence[Record], folds: Sequence[frozenset[str]]) -> None:
    """Train the network over the multilingual model anew in every head that is kept, and leave the tuned one.

    It takes minutes where the tuned model takes most of an hour.
    """
    prompts = broad.read(records)
    for number, fold in enumerate(folds):
        path = head_of_fold(number) if fold else VOICES / "learned" / WEIGHTS_FILE
        trained = []
        for left_out in ((MANUAL, DOCUMENTS), ()):
            seen = {record.source for record in records if not record.source.startswith(left_out)} - fold
            trained.append(broad.train([prompt for prompt in prompts if prompt.record.source in seen]))
        hidden, read = broad.averaged(trained)
        replace(Head.load(path), broad_hidden=hidden, broad_read=read).save(path)
        print(f"{'fold ' + str(number) if fold else 'the whole'}: {time.process_time():.0f} s", flush=True)


def averaged(trained: Sequence[Head]) -> Head:
    """One head from several that began alike: the mean of what they change and of how they weigh.

    It takes no longer to read with than one of them, and ranks nearly as well as the mean of their scores.
    """
    share = 1 / len(trained)
    changes = {
        name: np.hstack([head.changes[name] * share for head in trained])
        if name.endswith(".b")
        else np.vstack([head.changes[name] for head in trained])
        for name in trained[0].changes
    }
    broad_hidden, broad_read = broad.averaged([(head.broad_hidden, head.broad_read) for head in trained])
    folder = weights_folder()
    assert folder is not None
    return replace(
        trained[0],
        changes=changes,
        skim=np.mean([head.skim for head in trained], axis=0),
        read=np.mean([head.read for head in trained], axis=0),
        broad_hidden=broad_hidden,
        broad_read=broad_read,
        fingerprint=fingerprint(Encoder(folder, changes)),
    )


def blind_windows(records: Sequence[Record], folds: Sequence[frozenset[str]]) -> list[tuple[Judged, ...]]:
    """For each prompt the windows that were read in full, by the models of its fold."""
    judges = [Judge(Head.load(head_of_fold(number))) for number in range(len(folds))]
    read = []
    for record in records:
        judge = next(judge for judge, fold in zip(judges, folds, strict=True) if record.source in fold)
        read.append(judge.open(record.prompt).judged())
    return read


def calibrated(records: Sequence[Record], windows: Sequence[tuple[Judged, ...]]) -> np.ndarray:
    """From scores to log-odds, for each kind of window: a logistic regression on prompts of unseen sources,
    its offset such that few benign ones reach the alarm."""
    found = []
    for kind in range(len(UNCALIBRATED)):
        part = [
            (record, worst)
            for record, read in zip(records, windows, strict=True)
            if (worst := _worst(record, read, kind)) is not None
        ]
        rows = np.array([[worst.tuned or 0.0, worst.broad] for _, worst in part])
        attack = np.array([is_attack(record) for record, _ in part])
        weights = logistic(rows, attack, shares([record for record, _ in part]))[:-1]
        edge = strictest_needed(numbers((rows @ weights)[~attack].tolist()), FALSE_ALARMS)
        found.append([*weights, math.log(ALARM / (1 - ALARM)) - edge])
        print(f"kind {kind}: {attack.sum()} attacks, {(~attack).sum()} benign prompts, {found[-1]}")
    return np.array(found, np.float32)


def _worst(record: Record, read: tuple[Judged, ...], kind: int) -> Judged | None:
    """The window of a kind that both models find worst; none where an attack seems to be elsewhere."""

    def both(window: Judged) -> float:
        return (window.tuned or 0.0) + window.broad

    worst = max((window for window in read if window.kind == kind), key=both, default=None)
    return None if is_attack(record) and worst is not max(read, key=both, default=None) else worst


def report(records: Sequence[Record], windows: Sequence[tuple[Judged, ...]], calibration: np.ndarray) -> None:
    """Figures for each set and each kind of language."""
    known, later = ({record.source for record in each()} for each in (development, further))
    sets: dict[str, Callable[[Record], bool]] = {
        "dev.jsonl": lambda record: record.source in known,
        "dev2.jsonl": lambda record: record.source in later,
        "in other languages": lambda record: bool(unread_languages(record.prompt)),
        "long documents": lambda record: record.source.startswith((MANUAL, DOCUMENTS)),
    }
    strengths = [
        max(
            (replace(each, head=replace(each.head, calibration=calibration)).strength for each in read),
            default=0.0,
        )
        for read in windows
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
    parser.add_argument("--broad-only", action="store_true", help="train the multilingual half of each head")
    parser.add_argument("--calibrate-only", action="store_true", help="train nothing; use what is kept")
    options = parser.parse_args()
    torch.set_num_threads(1)
    prompts, long = [*development(), *further(), *multilingual()], [*documents(), *harmless(TRAINED)]
    # Apart, so that whoever has no manuals deals the other sources alike.
    folds = [
        some | others
        for some, others in zip(
            *(sources_dealt(each, NUMBER_OF_FOLDS) for each in (prompts, long)), strict=True
        )
    ]
    scored, pairs = [*prompts, *long], written_pairs()
    every = [*scored, *authored(), *pairs, *small_talk(), *with_orders(harmless(TRAINED), pairs)]
    if not options.calibrate_only:
        wanted = ([] if options.whole_only else [*folds]) + ([] if options.folds_only else [frozenset()])
        (broad_heads if options.broad_only else heads)(every, wanted)
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
