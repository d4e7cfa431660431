"""Heads of the neural voice that never saw a fold of sources, kept by `training.neural`; needs no torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from firecircle.lab.datasets import Record
from firecircle.voices.embedded.learned.head import Head
from firecircle.voices.embedded.learned.neural import NeuralReader
from training import ROOT
from training.labelled import development, further, latest, multilingual, sources_dealt

FOLDS = ROOT / "training" / "folds"
"""Written by `python -m training.neural`, a file for each fold."""
NUMBER_OF_FOLDS = 3


def head_of_fold(number: int) -> Path:
    """Where the head is that never saw a fold."""
    return FOLDS / f"{number}.npz"


def folds_of(*sets: Sequence[Record]) -> list[frozenset[str]]:
    """The sources dealt into folds, set by set, so that whoever lacks one deals the others alike."""
    dealt = (sources_dealt(records, NUMBER_OF_FOLDS) for records in sets)
    return [frozenset().union(*parts) for parts in zip(*dealt, strict=True)]


def labelled_folds() -> list[frozenset[str]]:
    """The folds of the labelled prompts, for both learned readers."""
    return folds_of([*development(), *further(), *multilingual()], latest())


def blind_readers(sources: Iterable[str]) -> dict[str, NeuralReader]:
    """For every source a neural reader that never saw it: the shipped one where it was not trained on it."""
    readers = dict.fromkeys(sources, NeuralReader())
    for number, fold in enumerate(labelled_folds()):
        reader = NeuralReader(Head.load(head_of_fold(number)))
        readers.update({source: reader for source in fold if source in readers})
    return readers
