"""The labelled prompts that the learned voices are trained and measured on, read by the lab's own reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from firecircle.lab.datasets import Record, read_dataset
from training import ROOT

DATA = ROOT.parent / "shared" / "data"
DEV, DEV2, SEALED = DATA / "dev.jsonl", DATA / "dev2.jsonl", DATA / "dev2_sealed.jsonl"
AUTHORED = tuple(sorted((ROOT / "training" / "data").glob("authored_*.jsonl")))
UNSEEN = ("agentdojo", "bipia_email", "derived_A_authority", "openclay_attackdb", "prompts_chat")
"""Sources that no rule was written on."""
MULTILINGUAL = "multilingual"
"""How the names of our sources in other languages begin."""
DOCUMENTS = "documents"
"""How the names of our sources of long documents begin."""
ALARM = 0.7


def development() -> list[Record]:
    """The development prompts, in the order of their file."""
    if not DEV.exists():
        raise SystemExit(f"{DEV} is not there: the labelled prompts are kept outside the repository")
    return list(read_dataset(DEV))


def further() -> list[Record]:
    """Development prompts from sources that were collected after the rules were written."""
    return list(read_dataset(DEV2))


def authored() -> list[Record]:
    """The prompts written for this project: always trained on, never scored. Each file is a source."""
    return [record for path in AUTHORED for record in read_dataset(path)]


def written_pairs() -> list[Record]:
    """Benign prompts that look like attacks and attacks that look benign: built from parts
    (`training.hard_pairs`), and written one by one in the manner of several dozen imagined corpora."""
    names = ("hard_pairs", "written_english", "written_corpora")
    return [record for name in names for record in read_dataset(ROOT / "training" / "data" / f"{name}.jsonl")]


def multilingual() -> list[Record]:
    """Attacks and benign prompts in 26 languages, as many of each, written one by one."""
    return list(read_dataset(ROOT / "training" / "data" / "written_multilingual.jsonl"))


def small_talk() -> list[Record]:
    """What people say to a machine without wanting anything of it, and short attacks beside, in 24 languages:
    always trained on, never scored."""
    return list(read_dataset(ROOT / "training" / "data" / "written_small_talk.jsonl"))


def documents() -> list[Record]:
    """Long documents and tool results full of orders for people, some with one for a model: written one by
    one, without a look at the labelled sets."""
    return list(read_dataset(ROOT / "training" / "data" / "written_documents.jsonl"))


def is_attack(record: Record) -> bool:
    """Whether its label says so; no prompt here is without one."""
    return record.label == "attack"


def is_derived(record: Record) -> bool:
    """Whether it is one of a pair of an attack and its benign twin, made for this project."""
    return record.source.startswith("derived_A_")


def sources_dealt(records: Sequence[Record], count: int) -> list[frozenset[str]]:
    """The sources dealt into folds, the largest first, so that each fold has attacks and benign prompts."""
    size = Counter(record.source for record in records)
    dealt: list[set[str]] = [set() for _ in range(count)]
    for source, _ in sorted(size.items(), key=lambda item: (-item[1], item[0])):
        min(dealt, key=lambda fold: (sum(size[name] for name in fold), sorted(fold))).add(source)
    return list(map(frozenset, dealt))


def shares(records: Sequence[Record]) -> NDArray[np.float64]:
    """How much each record counts: sources by the square root of their size."""
    size = Counter(record.source for record in records)
    return np.array([size[record.source] ** -0.5 for record in records])
