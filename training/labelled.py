"""The labelled prompts that the learned voices are trained and measured on, read by the lab's own reader."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from firecircle.lab.datasets import Record, read_dataset
from firecircle.voices.embedded.learned import LEARNT_TYPES
from training import ROOT

DATA = ROOT.parent / "shared" / "data"
DEV, DEV2, DEV3 = DATA / "dev.jsonl", DATA / "dev2.jsonl", DATA / "dev3.jsonl"
SEALED = DATA / "dev2_sealed.jsonl"
WRITTEN = ROOT / "training" / "data"
AUTHORED = tuple(sorted(WRITTEN.glob("authored_*.jsonl")))
TWINS = tuple(
    sorted(
        (
            *WRITTEN.glob("typed_*.jsonl"),
            WRITTEN / "commands_in_documents.jsonl",
            WRITTEN / "everyday_imperatives.jsonl",
        )
    )
)
"""Attacks of a type with their words marked, each with a harmless twin, and everyday orders."""
UNSEEN = ("agentdojo", "bipia_email", "derived_A_authority", "openclay_attackdb", "prompts_chat")
"""Sources that no rule was written on."""
MULTILINGUAL = "multilingual"
"""How the names of our sources in other languages begin."""
DOCUMENTS = "documents"
"""How the names of our sources of long documents begin."""
ALARM = 0.7
FAMILIES = {
    "instruction_override": "role_confusion",
    "jailbreak_persona": "role_confusion",
    "role_confusion": "role_confusion",
    "indirect_injection": "cross_layer_fabrication",
    "cross_layer_fabrication": "cross_layer_fabrication",
    "fabricated_history": "temporal_inconsistency",
    "temporal_inconsistency": "temporal_inconsistency",
    "fabricated_progression": "fabricated_progression",
    "system_prompt_extraction": "polite_extraction",
    "polite_extraction": "polite_extraction",
    "educational_escalation": "educational_escalation",
    "false_authority": "false_authority",
    "context_saturation": "context_saturation",
}
"""The pattern type that a family of the labelled sets shows, where it shows one."""
TYPES = LEARNT_TYPES
ALSO_RIGHT = {
    "instruction_override": ("cross_layer_fabrication",),
    "jailbreak_persona": ("educational_escalation", "cross_layer_fabrication"),
    "role_confusion": ("cross_layer_fabrication",),
    "indirect_injection": ("role_confusion", "false_authority"),
    "cross_layer_fabrication": ("role_confusion", "false_authority"),
    "fabricated_history": ("fabricated_progression", "cross_layer_fabrication"),
    "fabricated_progression": ("temporal_inconsistency",),
    "system_prompt_extraction": ("role_confusion",),
    "polite_extraction": ("role_confusion", "false_authority"),
    "educational_escalation": ("role_confusion", "polite_extraction"),
    "false_authority": ("role_confusion", "cross_layer_fabrication", "polite_extraction"),
    "context_saturation": ("role_confusion", "cross_layer_fabrication", "polite_extraction"),
}
"""Types that a reader of such a prompt would also accept: attacks often do two things at once."""
POLICY = ("policy_violation",)
"""Families that are attacks only against the system prompt they come with."""


def development() -> list[Record]:
    """The development prompts, in the order of their file."""
    if not DEV.exists():
        raise SystemExit(f"{DEV} is not there: the labelled prompts are kept outside the repository")
    return list(read_dataset(DEV))


def further() -> list[Record]:
    """Development prompts from sources that were collected after the rules were written."""
    return list(read_dataset(DEV2))


def latest() -> list[Record]:
    """Development prompts of ten more sources: agents, mail, Chinese documents, skills."""
    return list(read_dataset(DEV3))


def twins() -> list[Record]:
    """Typed attacks with harmless twins, commands in documents, everyday orders: trained on, never scored."""
    return [record for path in TWINS for record in read_dataset(path)]


@cache
def _spans() -> dict[str, tuple[str, str]]:
    rows = (json.loads(line) for path in TWINS for line in path.read_text("utf-8").splitlines())
    return {row["id"]: (row["layer"], row["span"]) for row in rows if row.get("span")}


def span_of(record: Record) -> tuple[str, int, int] | None:
    """Where the words stand that make one of our typed texts an attack: layer, start and end."""
    if record.id not in _spans():
        return None
    layer, words = _spans()[record.id]
    start = str(getattr(record.prompt, layer)).find(words)
    return (layer, start, start + len(words)) if start >= 0 else None


def type_of(record: Record) -> str | None:
    """The pattern type of an attack, where its family shows one."""
    return FAMILIES.get(record.family or "") if is_attack(record) else None


def also_right(record: Record) -> tuple[str, ...]:
    """Every type that is a fair name for the attack."""
    return (*filter(None, (type_of(record),)), *ALSO_RIGHT.get(record.family or "", ()))


def authored() -> list[Record]:
    """The prompts written for this project: always trained on, never scored. Each file is a source."""
    return [record for path in AUTHORED for record in read_dataset(path)]


def written_pairs() -> list[Record]:
    """Benign prompts that look like attacks and attacks that look benign: built from parts
    with a fixed seed, and written one by one in the manner of several dozen imagined corpora."""
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


PULL = 0.01
"""How strongly the weights of a regression are pulled towards zero."""


def logistic(
    rows: NDArray[np.float64], attack: NDArray[np.bool_], share: NDArray[np.float64]
) -> NDArray[np.float64]:
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
