"""The labelled prompts that the learned voices are trained and measured on, read by the lab's own reader."""

from __future__ import annotations

from firecircle.lab.datasets import Record, read_dataset
from training import ROOT

DATA = ROOT.parent / "shared" / "data"
DEV, DEV2, SEALED = DATA / "dev.jsonl", DATA / "dev2.jsonl", DATA / "dev2_sealed.jsonl"
AUTHORED = tuple(sorted((ROOT / "training" / "data").glob("authored_*.jsonl")))
UNSEEN = ("agentdojo", "bipia_email", "derived_A_authority", "openclay_attackdb", "prompts_chat")
"""Sources that no rule was written on."""
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


def hard_pairs() -> list[Record]:
    """Benign prompts that look like attacks and attacks that look benign (`training.hard_pairs`)."""
    return list(read_dataset(ROOT / "training" / "data" / "hard_pairs.jsonl"))


def is_attack(record: Record) -> bool:
    """Whether its label says so; no prompt here is without one."""
    return record.label == "attack"


def is_derived(record: Record) -> bool:
    """Whether it is one of a pair of an attack and its benign twin, made for this project."""
    return record.source.startswith("derived_A_")
