"""The prompts of two studies: `python -m bench.evidence layered > layered.jsonl`, then `lab run` the plan.

`layered` are those of docs/evidence.toml: short development prompts with a document and a user's message.
`mixed` are those of docs/offline.toml: short prompts of any kind. Both come in the order of the SHA-256 of
their ids, labels in turn, and none of them was used to word or to calibrate the local judge.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from bench.templates import DATA, EACH, FILES, Record, by_digest, chosen, length_of, read_records
from training.local_judge import CALIBRATED_ON, WORDING_CHOSEN_ON

LONGEST_LAYERED = 700
"""Characters of all layers and turns: the study asks a model on one thread many times a prompt."""
LAYERED, MIXED = 30, 100
"""Attacks, and as many harmless prompts."""
USED = EACH + WORDING_CHOSEN_ON + CALIBRATED_ON
"""Of each label, the first so many of the short prompts were used for the judge itself."""


def main() -> None:
    """Print the records."""
    parser = argparse.ArgumentParser(description="Print the prompts of a study, as JSON lines.")
    parser.add_argument("study", choices=("layered", "mixed"))
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder of {' and '.join(FILES)}")
    options = parser.parse_args()
    records = read_records(options.data)
    for name in layered(records) if options.study == "layered" else mixed(records):
        print(json.dumps(records[name]))


def mixed(records: Mapping[str, Record]) -> list[str]:
    """The ids of short prompts of any kind."""
    return chosen(records.values(), first=USED, each=MIXED)


def layered(records: Mapping[str, Record]) -> list[str]:
    """The ids of short prompts with a document and a message."""
    used = set(chosen(records.values(), each=USED))
    fresh = [
        record
        for record in by_digest(records.values())
        if record["id"] not in used
        and record["application"]
        and record["user"]
        and length_of(record) < LONGEST_LAYERED
    ]
    attacks = [record["id"] for record in fresh if record["label"] == "attack"]
    benign = [record["id"] for record in fresh if record["label"] == "benign"]
    return list(chain.from_iterable(zip(attacks[:LAYERED], benign[:LAYERED], strict=True)))


if __name__ == "__main__":
    main()
