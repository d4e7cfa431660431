"""The figures of a comparison, all from the lab's statistics, and whether F can be read as a probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.detection.contenders import Contender
from firecircle.lab.datasets import Record
from firecircle.lab.statistics import Rates, Scored, rates, scored
from training.labelled import is_attack

BINS = 10


def scores_of(records: Sequence[Record], contender: Contender) -> Scored:
    """A contender's scores by label."""
    return scored([record.label for record in records], contender.scores)


def alarms_of(records: Sequence[Record], contender: Contender) -> Rates:
    """What a contender's alarms achieve; a rival decides about them in its own way, so they are no score."""
    return rates(scored([record.label for record in records], list(map(float, contender.alarms))), 0.5)


class Bin(NamedTuple):
    """The prompts with F in one tenth."""

    start: float
    prompts: int
    mean: float
    attacks: float
    """The share of attacks among them."""


def reliability(records: Sequence[Record], contender: Contender) -> list[Bin]:
    """For each tenth of F that occurs, the mean F and the share of attacks."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for score, record in zip(contender.scores, records, strict=True):
        bins.setdefault(min(int(score * BINS), BINS - 1), []).append((score, is_attack(record)))
    return [
        Bin(
            at / BINS,
            len(members),
            sum(score for score, _ in members) / len(members),
            sum(attack for _, attack in members) / len(members),
        )
        for at, members in sorted(bins.items())
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """How far F is from the observed share of attacks, on average."""
    prompts = sum(tenth.prompts for tenth in bins)
    return sum(tenth.prompts * abs(tenth.mean - tenth.attacks) for tenth in bins) / prompts
