"""Scores laid out by label: what every measure of detection starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firecircle.errors import ConfigError
from firecircle.lab.datasets.record import Label
from firecircle.lab.statistics.estimate import BoolArray, FloatArray, numbers

NO_ATTACKS = "there is no attack to find"
NO_BENIGN = "there is no benign prompt to raise a false alarm"


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of attacks and of benign prompts. High means alarm."""

    attack: FloatArray
    benign: FloatArray
    unlabelled: int = 0
    missing: int = 0
    """Labelled prompts without a score: they are in neither array."""

    @property
    def one_class(self) -> str | None:
        """Why no measure that needs both labels can be had, if so."""
        if not self.attack.size:
            return NO_ATTACKS
        return None if self.benign.size else NO_BENIGN


def scored(labels: Sequence[Label | None], scores: Sequence[float | None] | FloatArray) -> Scored:
    """Scores sorted by label; prompts without a label or a score are counted and left out."""
    attack, benign = by_label(labels)
    values = numbers(scores)
    same_length(labels, values)
    heard = np.isfinite(values)
    return Scored(
        attack=values[attack & heard],
        benign=values[benign & heard],
        unlabelled=int((~attack & ~benign).sum()),
        missing=int(((attack | benign) & ~heard).sum()),
    )


def by_label(labels: Sequence[Label | None]) -> tuple[BoolArray, BoolArray]:
    """Which entries are attacks, and which are benign."""
    told = np.asarray(list(labels), dtype=object)
    return np.asarray(told == "attack", dtype=np.bool_), np.asarray(told == "benign", dtype=np.bool_)


def same_length(first: Sequence[object] | FloatArray, second: Sequence[object] | FloatArray) -> None:
    """Refuse two columns that cannot belong to the same records."""
    if len(first) != len(second):
        raise ConfigError(
            "statistics", f"{len(first)} entries beside {len(second)}", "give one of each for every record"
        )
