"""A sentence of a report, and how numbers stand in it."""

from __future__ import annotations

from typing import Literal

from firecircle.lab.statistics import Estimate
from firecircle.shapes import Shape, Text

Tone = Literal["plain", "gain", "loss", "warning"]
Part = Literal["first", "care", "rest"]


class Sentence(Shape):
    """One thing the run shows, and how it reads."""

    text: Text
    tone: Tone = "plain"
    part: Part = "rest"
    """What matters most, what to be careful about, and everything else."""


def shares(estimate: Estimate) -> str:
    """A share with its interval."""
    if estimate.value is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.1%}"
    return f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def many(count: int, what: str) -> str:
    """`1 attack`, `2 attacks`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
