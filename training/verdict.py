"""Fit the calibrated verdict of the embedded circles: `python -m training.verdict`.

Holds the default circles, with and without the neural voice, over dev.jsonl and dev2.jsonl, each prompt once
and by voices that never saw its source; then fits, every source left out in turn, and writes
voices/calibrations.json. Run it again whenever an embedded voice changes (some minutes, most of them the
neural voice's). A circle whose calibration ranks worse than the highest F gets none, and that is said. With
`--check` nothing is written; `--keep FILE` writes down what every voice said, and `--from FILE` fits that
again without judging.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.detection.contenders import Judgement, judged_by_circle
from bench.detection.seats import Seats, blind_seats
from firecircle.circle.config import FireCircleConfig
from firecircle.lab.calibrated import FittedVerdict, LabelledWords, fit_verdict
from firecircle.lab.datasets import Record
from firecircle.lab.statistics.estimate import numbers
from firecircle.names import EMBEDDED_MODELS, NEURAL_MODEL
from firecircle.voices.calibrations import FILE
from firecircle.voices.embedded.learned.neural import is_available
from training import ROOT
from training.labelled import ALARM, development, further, is_attack

ROUNDS = FireCircleConfig.model_fields["max_rounds"].default
CIRCLES = {"six": EMBEDDED_MODELS, "seven": (*EMBEDDED_MODELS, NEURAL_MODEL)}


class Said(NamedTuple):
    """What the voices of a circle said of one prompt, round by round."""

    source: str
    attack: bool
    rounds: Sequence[dict[str, float]]


def words_of(models: Sequence[str], said: Sequence[Said], rounds: int = ROUNDS) -> LabelledWords:
    """The judgements as numbers."""
    falsehood = [
        [
            [one.rounds[at].get(model, np.nan) if at < len(one.rounds) else np.nan for at in range(rounds)]
            for model in models
        ]
        for one in said
    ]
    return LabelledWords(
        tuple(models),
        numbers(falsehood),
        np.array([one.attack for one in said]),
        tuple(one.source for one in said),
    )


def said_of(records: Sequence[Record], judgements: Sequence[Judgement]) -> list[Said]:
    """Each record with what was said of it."""
    return [
        Said(record.source, is_attack(record), judgement.rounds)
        for record, judgement in zip(records, judgements, strict=True)
    ]


def _judged(name: str, records: Sequence[Record], seats: Seats) -> list[Said]:
    """What a circle says of the records that all its voices are blind to."""
    heard = [record for record in records if record.source in seats]
    circle = judged_by_circle(name, heard, seats)
    print(f"{name}: {len(heard)} prompts of {len(seats)} sources, {circle.time.cpu:.0f} ms each", flush=True)
    return said_of(heard, circle.judgements)


def _tell(name: str, fitted: FittedVerdict) -> None:
    fit = fitted.calibration.fit
    print(f"{name}: {fit.attacks} attacks, {fit.benign} benign, {fit.folds}, pull {fit.ridge:g}")
    for rule, tried in (("calibrated", fit.calibrated), ("maximum", fit.maximum)):
        print(
            f"  {rule:10} AUC {tried.auc:.3f}, recall {tried.recall_at_1_percent:.2f} at 1% and"
            f" {tried.recall_at_5_percent:.2f} at 5%; at {ALARM} {tried.recall:.1%} of attacks and"
            f" {tried.false_alarm_rate:.1%} of benign; ECE {tried.calibration_error:.3f}"
        )
    gain, low, high = fit.auc_gain
    print(f"  AUC {gain:+.3f} [{low:+.3f}, {high:+.3f}]; thresholds {fit.thresholds}")
    for voice, weights in fitted.calibration.voices.items():
        print(f"    {voice:22} {'  '.join(f'{weight:.3f}' for weight in weights.weights)}")


def main() -> None:
    """Judge, fit, report, write."""
    parser = argparse.ArgumentParser(
        prog="python -m training.verdict",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="print the figures, write nothing")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep what every voice said")
    parser.add_argument("--from", type=Path, dest="kept", metavar="FILE", help="fit what was kept")
    options = parser.parse_args()
    if options.kept:
        kept = json.loads(options.kept.read_text(encoding="utf-8"))
        said = {name: [Said(*one) for one in each] for name, each in kept.items()}
    else:
        records = [*development(), *further()]
        circles = CIRCLES if is_available() else {"six": EMBEDDED_MODELS}
        said = {name: _judged(name, records, blind_seats(models)) for name, models in circles.items()}
    if options.keep:
        options.keep.write_text(json.dumps(said), encoding="utf-8")
    shipped = []
    for name, each in said.items():
        words = words_of(CIRCLES[name], each)
        origin = f"{len(set(words.sources or ()))} public sources"
        # Of no day: the same data gives the same file.
        fitted = fit_verdict(words, origin=origin, threshold=ALARM, name=f"shipped-{name}", at=0.0)
        _tell(name, fitted)
        # It is told beside the highest F and decides only where a user wants it to: so it is shipped where it
        # is the better probability and ranks nearly as well. Whoever fits one's own is held to beating it.
        if fitted.is_truer:
            shipped.append(fitted.calibration.model_dump(mode="json"))
        else:
            print("  it ranks worse than the highest F, or is no better probability: none is shipped")
    if not options.check:
        path = ROOT / "src" / "firecircle" / "voices" / FILE
        path.write_text(json.dumps(shipped, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {path.name}: {len(shipped)} calibrations, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
