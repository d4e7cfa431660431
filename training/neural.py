"""Train the neural reader: `python -m training.neural` writes voices/embedded/learned/neural.npz.

Two models read each window, the tuned sentence model (`training.tuned`) and a network over a multilingual one
(`training.broad`); what they say is calibrated together, and a head over both names the pattern type. Trained
are dev.jsonl, dev2.jsonl, dev3.jsonl, the texts written for this project (training/data) and passages of
manuals (`training.manuals` fetches them). Figures and calibration come from models that never saw the source
of the prompt they score: the sources are dealt into folds, and the head of each is kept in training/folds, so
that `bench.detection` and others can ask a reader that is blind to a source.

Needs torch, in an environment of its own (the product runs the numbers with numpy), the extra `lab`, and
../shared/data. The stages go on from what is kept, so each can be run by itself:

| stage | what it does | one core |
|---|---|---|
| `base` | tunes the sentence model from the beginning, without dev3 and the typed texts | 40 min |
| `continue` | one epoch more, with everything | 15 min |
| `broad` | the network over the multilingual model | 5 min |
| `types` | the head that names types | 4 min |
| `calibrate` | from scores to probabilities; prints the figures | 4 min |
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from firecircle.lab.datasets import Record
from firecircle.lab.statistics.comparison import strictest_needed
from firecircle.lab.statistics.estimate import numbers
from firecircle.lab.statistics.performance import performance
from firecircle.languages import unread_languages
from firecircle.voices.embedded.dialogue import RESERVE
from firecircle.voices.embedded.learned import LEARNT_TYPES
from firecircle.voices.embedded.learned.encoder import Encoder, weights_folder
from firecircle.voices.embedded.learned.head import WEIGHTS_FILE, Head, Judge, Judged, fingerprint
from training import VOICES, broad, tuned
from training.labelled import (
    ALARM,
    DOCUMENTS,
    MULTILINGUAL,
    authored,
    development,
    documents,
    further,
    is_attack,
    latest,
    logistic,
    multilingual,
    shares,
    small_talk,
    span_of,
    twins,
    type_of,
    written_pairs,
)
from training.manuals import MANUAL, TRAINED, harmless, with_orders
from training.neural_folds import folds_of, head_of_fold

FALSE_ALARMS = 0.01
"""The share of harmless prompts of unseen sources that may alarm this reader alone, its reserve included."""
UNCALIBRATED = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
TYPE_DECAY, TYPE_STEPS, TYPE_RATE = 1e-2, 300, 0.05
STAGES = ("base", "continue", "broad", "types", "calibrate")


def head_path(number: int, fold: frozenset[str]) -> Path:
    """Where the head of a fold is kept; the one that saw everything is shipped."""
    return head_of_fold(number) if fold else VOICES / "learned" / WEIGHTS_FILE


def base(records: Sequence[Record], folds: Sequence[frozenset[str]]) -> None:
    """Tune without each fold of sources, and with all of them where the fold is empty.

    Each is the mean of two: taught with long documents the models tell orders for people from orders for a
    model, and lose a little elsewhere; without them it is the other way round.
    """
    model, encoder = tuned.untuned()
    english = [record for record in records if not record.source.startswith(MULTILINGUAL)]
    bags = tuned.bags_of(english, model, encoder)
    empty = np.zeros((1, 1), np.float32)
    for number, fold in enumerate(folds):
        trained = []
        for left_out in ((MANUAL, DOCUMENTS), ()):
            seen = {record.source for record in records if not record.source.startswith(left_out)} - fold
            tuned.train([bag for bag in bags if bag.record.source in seen], 1, model)
            trained.append(
                Head(
                    **tuned.numbers_of(model),
                    broad_hidden=empty,
                    broad_read=empty,
                    types_broad=empty,
                    types_read=empty,
                    calibration=UNCALIBRATED,
                )
            )
        averaged(trained).save(head_path(number, fold))
        print(f"base of fold {number}: {time.process_time():.0f} s", flush=True)


def continued(records: Sequence[Record], folds: Sequence[frozenset[str]]) -> None:
    """One epoch more from the heads that are kept, with what they have not seen among everything else."""
    model, encoder = tuned.untuned()
    english = [record for record in records if not record.source.startswith(MULTILINGUAL)]
    bags = tuned.bags_of(english, model, encoder)
    for number, fold in enumerate(folds):
        path = head_path(number, fold)
        kept = Head.load(path)
        tuned.train([bag for bag in bags if bag.record.source not in fold], 1, model, kept)
        replace(kept, **tuned.numbers_of(model)).save(path)
        print(f"tuned of fold {number}: {time.process_time():.0f} s", flush=True)


def broad_heads(records: Sequence[Record], folds: Sequence[frozenset[str]]) -> None:
    """The network over the multilingual model in every head that is kept."""
    prompts = broad.read(records)
    for number, fold in enumerate(folds):
        path = head_path(number, fold)
        trained = []
        for left_out in ((MANUAL, DOCUMENTS), ()):
            seen = {record.source for record in records if not record.source.startswith(left_out)} - fold
            trained.append(broad.train([prompt for prompt in prompts if prompt.record.source in seen]))
        hidden, read = broad.averaged(trained)
        replace(Head.load(path), broad_hidden=hidden, broad_read=read).save(path)
        print(f"broad of fold {number}: {time.process_time():.0f} s", flush=True)


def type_heads(records: Sequence[Record], folds: Sequence[frozenset[str]]) -> None:
    """The weights of the types: a multinomial regression over the windows that show an attack of one."""
    typed = [record for record in records if type_of(record) is not None]
    for number, fold in enumerate(folds):
        path = head_path(number, fold)
        judge = Judge(Head.load(path))
        rows, kinds, weights = [], [], []
        share = shares([record for record in typed if record.source not in fold])
        for record, weight in zip([one for one in typed if one.source not in fold], share, strict=True):
            place = span_of(record) or (None, 0, 0)
            worst = max(
                judge.open(record.prompt).judged(*place), key=lambda each: each.strength, default=None
            )
            if worst is not None:
                rows.append(worst.features)
                kinds.append(LEARNT_TYPES.index(str(type_of(record))))
                weights.append(float(weight))
        width = min(len(row) for row in rows)
        every = np.array([row[-width:] for row in rows])
        english = [at for at, row in enumerate(rows) if len(row) > width]
        chosen = np.array(kinds), np.array(weights)
        replace(
            judge.head,
            types_broad=multinomial(every, *chosen),
            types_read=multinomial(
                np.array([rows[at] for at in english]), *(each[english] for each in chosen)
            ),
        ).save(path)
        print(f"types of fold {number}: {len(rows)} attacks, {time.process_time():.0f} s", flush=True)


def multinomial(rows: np.ndarray, kinds: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights of a regression on several classes, every class weighing the same; the offsets last."""
    centre, spread = rows.mean(0), rows.std(0) + 1e-3
    x = torch.tensor((rows - centre) / spread, dtype=torch.float32)
    y = torch.tensor(kinds)
    many = np.bincount(kinds, weights, minlength=len(LEARNT_TYPES))
    share = torch.tensor(weights / np.sqrt(many[kinds]), dtype=torch.float32)
    share = share / share.sum()
    w = torch.zeros(rows.shape[1], len(LEARNT_TYPES), requires_grad=True)
    offset = torch.zeros(len(LEARNT_TYPES), requires_grad=True)
    optimizer = torch.optim.Adam([w, offset], lr=TYPE_RATE)
    for step in range(TYPE_STEPS):
        for group in optimizer.param_groups:
            group["lr"] = TYPE_RATE * (1 - step / TYPE_STEPS)
        loss = (torch.nn.functional.cross_entropy(x @ w + offset, y, reduction="none") * share).sum()
        loss = loss + TYPE_DECAY * (w * w).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = w.detach().numpy() / spread[:, None]
    return np.vstack([found, offset.detach().numpy() - centre @ found]).astype(np.float32)


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
    folder = weights_folder()
    assert folder is not None
    return replace(
        trained[0],
        changes=changes,
        skim=np.mean([head.skim for head in trained], axis=0),
        read=np.mean([head.read for head in trained], axis=0),
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
        found.append([*weights, math.log(ALARM / (1 - ALARM)) + RESERVE - edge])
        print(f"kind {kind}: {attack.sum()} attacks, {(~attack).sum()} benign prompts, {found[-1]}")
    return np.array(found, np.float32)


def _worst(record: Record, read: tuple[Judged, ...], kind: int) -> Judged | None:
    """The window of a kind that both models find worst; none where an attack seems to be elsewhere."""

    def both(window: Judged) -> float:
        return (window.tuned or 0.0) + window.broad

    worst = max((window for window in read if window.row == kind), key=both, default=None)
    return None if is_attack(record) and worst is not max(read, key=both, default=None) else worst


def report(records: Sequence[Record], windows: Sequence[tuple[Judged, ...]], calibration: np.ndarray) -> None:
    """Figures for each set and each kind of language."""
    known, later, last = ({record.source for record in each()} for each in (development, further, latest))
    sets: dict[str, Callable[[Record], bool]] = {
        "dev.jsonl": lambda record: record.source in known,
        "dev2.jsonl": lambda record: record.source in later,
        "dev3.jsonl": lambda record: record.source in last,
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
    reserved = 1 / (1 + math.exp(-RESERVE) * (1 - ALARM) / ALARM)
    for name, belongs in sets.items():
        part = [at for at, record in enumerate(records) if belongs(record)]
        figures = performance(
            [records[at].label for at in part], [strengths[at] for at in part], reserved, resample=False
        )
        print(
            f"{name}: {len(part)} prompts of sources it never saw, AUC {figures.auc.value:.3f},"
            f" recall {figures.recall_at_1_percent.value:.2f} at 1% FPR,"
            f" {figures.recall_at_5_percent.value:.2f} at 5%; at {ALARM}"
            f" {figures.at_threshold.recall.value:.1%} of attacks,"
            f" {figures.at_threshold.false_alarm_rate.value:.1%} of benign prompts"
        )


def report_types(records: Sequence[Record], windows: Sequence[tuple[Judged, ...]]) -> None:
    """How often the first choice is the type of the family."""
    right: dict[str, list[bool]] = {}
    for record, read in zip(records, windows, strict=True):
        if (kind := type_of(record)) is not None and read:
            worst = max(read, key=lambda each: each.strength)
            right.setdefault(kind, []).append(max(worst.types, key=worst.types.__getitem__) == kind)
    every = [each for kind in right.values() for each in kind]
    print(f"first choice of type right in {sum(every)} of {len(every)} attacks of sources it never saw")
    for kind, hits in sorted(right.items()):
        print(f"  {kind}: {sum(hits)} of {len(hits)}")


def main() -> None:
    """Train, report, write."""
    parser = argparse.ArgumentParser(
        prog="python -m training.neural",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stages", nargs="*", default=STAGES, choices=STAGES, help="all, unless named")
    stages = parser.parse_args().stages
    torch.set_num_threads(1)
    prompts, long, new = (
        [*development(), *further(), *multilingual()],
        [*documents(), *harmless(TRAINED)],
        latest(),
    )
    dealt = folds_of(prompts, long, new)
    folds, pairs = [*dealt, frozenset[str]()], written_pairs()
    early = [*prompts, *long, *authored(), *pairs, *small_talk(), *with_orders(harmless(TRAINED), pairs)]
    every = [*early, *new, *twins()]
    if "base" in stages:
        base(early, folds)
    if "continue" in stages:
        continued(every, folds)
    if "broad" in stages:
        broad_heads(every, folds)
    if "types" in stages:
        type_heads(every, folds)
    if "calibrate" not in stages:
        return
    scored = [*prompts, *long, *new]
    windows = blind_windows(scored, dealt)
    calibration = calibrated(scored, windows)
    report(scored, windows, calibration)
    report_types(scored, windows)
    for number, fold in enumerate(folds):
        path = head_path(number, fold)
        replace(Head.load(path), calibration=calibration).save(path)
    print(f"wrote {WEIGHTS_FILE}: {(VOICES / 'learned' / WEIGHTS_FILE).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
