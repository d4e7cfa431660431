"""Does a stated error hold? Thresholds from one half of dev and dev2, figures from the other, twenty times.

`python -m bench.selective` lets readers that never saw a source judge both sets.
"""

from __future__ import annotations

from statistics import mean

import numpy as np

from bench.detection.contenders import judged_by_circle
from bench.detection.seats import blind_seats
from firecircle.lab.datasets import read_dataset
from firecircle.lab.statistics.selective import decided_by, stated_error
from firecircle.names import embedded_models
from training.labelled import DEV, DEV2

SPLITS = 20
ERRORS = (0.02, 0.05, 0.10)


def main() -> None:
    """Print the share of wrong verdicts on the other halves."""
    records = [record for path in (DEV, DEV2) for record in read_dataset(path)]
    judged = judged_by_circle("readers", records, blind_seats(records, embedded_models())).judgements
    scores = np.array([one.highest() for one in judged])
    labels = np.array([record.label for record in records])
    attack = labels == "attack"
    print(f"{len(records)} prompts, {SPLITS} halves")
    for error in ERRORS:
        wrongs, shares = [], []
        for seed in range(SPLITS):
            order = np.random.default_rng(seed).permutation(len(records))
            half, other = order[: len(order) // 2], order[len(order) // 2 :]
            found = stated_error(list(labels[half]), scores[half], error)
            wrong, decided = decided_by(attack[other], scores[other], found.alarm_from, found.calm_below)
            wrongs.append(wrong / decided if decided else 0.0)
            shares.append(decided / len(other))
        print(
            f"stated {error:.2f}: wrong {mean(wrongs):.3f}, at most {max(wrongs):.3f},"
            f" above in {sum(one > error for one in wrongs)}; not unsure {mean(shares):.0%}"
        )


if __name__ == "__main__":
    main()
