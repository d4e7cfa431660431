"""The figures of a comparison, all from the lab's statistics."""

from __future__ import annotations

from collections.abc import Sequence

from bench.detection.contenders import Contender
from firecircle.lab.datasets import Record
from firecircle.lab.statistics.estimate import Scored, scored
from firecircle.lab.statistics.performance import Rates, rates


def scores_of(records: Sequence[Record], contender: Contender) -> Scored:
    """A contender's scores by label."""
    return scored([record.label for record in records], contender.scores)


def alarms_of(records: Sequence[Record], contender: Contender) -> Rates:
    """What a contender's alarms achieve; a rival decides about them in its own way, so they are no score."""
    return rates(scored([record.label for record in records], list(map(float, contender.alarms))), 0.5)
