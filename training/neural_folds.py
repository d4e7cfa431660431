"""Heads of the neural voice that never saw a fold of sources, kept by `training.neural`; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from firecircle.lab.datasets import Record
from firecircle.voices.embedded.learned.head import Head
from firecircle.voices.embedded.learned.neural import NeuralLens
from training import ROOT
from training.labelled import development, further, multilingual, sources_dealt

FOLDS = ROOT / "training" / "folds"
"""`python -m training.neural --folds-only` makes them anew, in half an hour."""
NUMBER_OF_FOLDS = 3


def head_of_fold(number: int) -> Path:
    """Where the head is that never saw a fold."""
    return FOLDS / f"{number}.npz"


def blind_lenses(records: Sequence[Record]) -> dict[str, NeuralLens]:
    """For every source a neural lens that never saw it: the shipped one where it was not trained on it."""
    shipped = NeuralLens()
    lenses = {record.source: shipped for record in records}
    dealt = sources_dealt([*development(), *further(), *multilingual()], NUMBER_OF_FOLDS)
    for number, fold in enumerate(dealt):
        lens = NeuralLens(Head.load(head_of_fold(number)))
        lenses.update({source: lens for source in fold if source in lenses})
    return lenses
