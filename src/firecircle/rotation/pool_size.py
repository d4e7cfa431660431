"""How many voices a prompt deserves: more layers, turns and text leave more places to hide something."""

from __future__ import annotations

import re

from firecircle.circle.config import LARGEST_CIRCLE
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape

SMALLEST = 3
"""Two voices can be a quorum, but neither could be lost."""
LONG, VERY_LONG = 2_000, 20_000
MANY_TURNS = 4
_OPAQUE = re.compile(r"[A-Za-z0-9+/=_%\\-]{60,}")


class Complexity(Shape):
    """What makes a prompt hard to oversee; every point stands for one more voice."""

    layers: int
    characters: int
    turns: int
    opaque_runs: int
    """Long runs without a space, which may be an encoding."""

    @property
    def points(self) -> int:
        """One for each layer beyond the first, each step of length, many turns, and anything opaque."""
        return sum(
            (
                max(0, self.layers - 1),
                self.characters > LONG,
                self.characters > VERY_LONG,
                self.turns > MANY_TURNS,
                self.opaque_runs > 0,
            )
        )


def complexity_of(prompt: MultiNeutrosophicPrompt) -> Complexity:
    """What there is to oversee in a prompt."""
    return Complexity(
        layers=len(prompt.layers),
        characters=sum(len(layer.text) for layer in prompt.layers),
        turns=len(prompt.turns or ()),
        opaque_runs=sum(len(_OPAQUE.findall(layer.text)) for layer in prompt.layers),
    )


def circle_size_for(prompt: MultiNeutrosophicPrompt, available: int) -> int:
    """How many of the available voices to convene for this prompt."""
    return min(SMALLEST + complexity_of(prompt).points, LARGEST_CIRCLE, available)
