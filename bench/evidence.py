"""The prompts of docs/evidence.md: `python -m bench.evidence > layered.jsonl`, then `lab run` its plan.

Short development prompts with a document and a user's message, in the order of the SHA-256 of their ids,
labels in turn; none of them was used to word or to calibrate the local judge.
"""

from __future__ import annotations

import argparse
import json
from itertools import chain
from pathlib import Path

from bench.templates import DATA, EACH, FILES, Record, by_digest, chosen, length_of, read_records
from training.local_judge import CALIBRATED_ON, WORDING_CHOSEN_ON

LONGEST = 700
"""Characters of all layers and turns: the study asks a model on one thread a dozen times a prompt."""


def main() -> None:
    """Print the records."""
    parser = argparse.ArgumentParser(description="Print the layered prompts of the evidence study.")
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder of {' and '.join(FILES)}")
    parser.add_argument(
        "--each", type=int, default=32, help="how many attacks, and how many harmless prompts"
    )
    options = parser.parse_args()
    records = read_records(options.data)
    for name in layered(records, options.each):
        print(json.dumps(records[name]))


def layered(records: dict[str, Record], each: int) -> list[str]:
    """The ids of the study's prompts."""
    used = set(chosen(records.values(), each=EACH + WORDING_CHOSEN_ON + CALIBRATED_ON))
    fresh = [
        record
        for record in by_digest(records.values())
        if record["id"] not in used
        and record["application"]
        and record["user"]
        and length_of(record) < LONGEST
    ]
    attacks = [record["id"] for record in fresh if record["label"] == "attack"]
    benign = [record["id"] for record in fresh if record["label"] == "benign"]
    return list(chain.from_iterable(zip(attacks[:each], benign[:each], strict=True)))


if __name__ == "__main__":
    main()
