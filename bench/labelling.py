"""How many labels the review queue saves: its order against random order, simulated on dev2.

`python -m bench.labelling` lets readers that never saw a source judge dev2, then labels its prompts one by
one, as the queue of the viewer offers them and in random order, until both know the threshold and the
effective number of voices equally well: the 95% interval is as narrow and stays so. Seeds are fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np

from bench.detection.contenders import judged_by_circle
from bench.detection.seats import blind_seats
from firecircle.lab.datasets import read_dataset
from firecircle.lab.statistics.estimate import Estimate, FloatArray
from firecircle.lab.statistics.labelling import Labelling, labelling
from firecircle.names import embedded_models
from training.labelled import ALARM, DEV2

ORDERS, FIRST_SEED, MOST = 20, 100, 400
AFTER = (100, 200, 400)
"""Labels in random order whose width the queue has to reach."""


@dataclass(frozen=True)
class Pool:
    """The prompts with their labels, which are uncovered one by one."""

    falsehood: FloatArray
    alarms: FloatArray
    attack: FloatArray

    def known(self, labelled: list[int]) -> Labelling:
        """What these labels tell."""
        attack = np.full(len(self.attack), np.nan)
        attack[labelled] = self.attack[labelled]
        return labelling(self.falsehood, self.alarms, attack, ALARM)


def pool() -> Pool:
    """dev2 as judged by readers that never saw the source."""
    records = list(read_dataset(DEV2))
    judged = judged_by_circle("readers", records, blind_seats(records, embedded_models())).judgements
    return Pool(
        np.array([one.highest() for one in judged]),
        np.array([[float(f >= ALARM) for f in one.rounds[0].values()] for one in judged]),
        np.array([float(record.label == "attack") for record in records]),
    )


def told(of: Pool, seed: int, *, queued: bool) -> list[Labelling]:
    """What is known after each label; ties of the queue are in random order too."""
    order = [int(place) for place in np.random.default_rng(seed).permutation(len(of.attack))]
    labelled: list[int] = []
    steps = [of.known(labelled)]
    for number in range(MOST):
        gains = steps[-1].gains
        waiting = [place for place in order if place not in set(labelled)]
        labelled.append(max(waiting, key=lambda place: gains[place]) if queued else order[number])
        steps.append(of.known(labelled))
    return steps


def main() -> None:
    """Print the labels each order needs, and how often the intervals hold what all labels tell."""
    of = pool()
    every = of.known(list(range(len(of.attack))))
    runs = [
        (told(of, seed, queued=True), told(of, seed, queued=False))
        for seed in range(FIRST_SEED, FIRST_SEED + ORDERS)
    ]
    print(f"dev2: {len(of.attack)} prompts, {ORDERS} random orders, seeds from {FIRST_SEED}")
    for name, figure in (("threshold", _threshold), ("effective voices", _effective)):
        print(f"\n{name}, with all labels {figure(every).value:.3f}")
        for number in AFTER:
            needs = [
                1 + max(place for place, one in enumerate(queued) if _width(figure(one)) > target)
                for queued, drawn in runs
                for target in (_width(figure(drawn[number])),)
            ]
            width = median(_width(figure(drawn[number])) for _, drawn in runs)
            holds = [
                sum(_holds(figure(steps[number]), figure(every)) for steps in side)
                for side in zip(*runs, strict=True)
            ]
            print(
                f"  {number:4} labels at random: width {width:.3f}; the queue needs {median(needs):.0f}"
                f" ({min(needs)} to {max(needs)}), {1 - median(needs) / number:.0%} fewer;"
                f" holds the figure of all labels: queue {holds[0]}, random {holds[1]} of {ORDERS}"
            )


def _threshold(one: Labelling) -> Estimate:
    return one.threshold


def _effective(one: Labelling) -> Estimate:
    return one.effective or Estimate(value=None, low=-np.inf, high=np.inf)


def _width(of: Estimate) -> float:
    return (of.high or 0.0) - (of.low or 0.0)


def _holds(of: Estimate, true: Estimate) -> bool:
    return (of.low or 0.0) <= (true.value or 0.0) <= (of.high or 0.0)


if __name__ == "__main__":
    main()
