"""The empty chair: who holds it in which round, and what it brought that nobody else had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from firecircle.circle.pattern_types import Typing, heuristic_typing
from firecircle.circle.patterns import group_observations, observe

if TYPE_CHECKING:
    from firecircle.circle.config import FireCircleConfig
    from firecircle.circle.result import DialogueRound, Observation

PERFORMATIVE_BELOW = 0.10


def get_empty_chair_model(round_number: int, models: Sequence[str]) -> str | None:
    """Who holds the rotating chair in this round, over the starting list; nobody in round 1."""
    if round_number == 1:
        return None
    return models[(round_number - 1) % len(models)]


def chair_of_round(round_number: int, config: FireCircleConfig, active: Sequence[str]) -> str | None:
    """Who holds the chair in this round of this circle; a lost voice leaves it empty."""
    if not config.empty_chair or round_number == 1:
        return None
    fixed = None if config.empty_chair_rotation else config.empty_chair_model
    holder = fixed or get_empty_chair_model(round_number, config.models)
    return holder if holder in active else None


def calculate_empty_chair_influence(
    dialogue_history: Sequence[DialogueRound],
    empty_chair_models: Mapping[int, str],
    typing: Typing = heuristic_typing,
) -> float:
    """The share of pattern types that were first mentioned by the chair of that round.

    Within a round the voices are taken in the order of their ids, so the figure does not depend on
    who answered first.
    """
    return influence_of(observe(dialogue_history, typing), empty_chair_models)


def influence_of(observations: Sequence[Observation], empty_chair_models: Mapping[int, str]) -> float:
    """As `calculate_empty_chair_influence`, from observations that are already typed."""
    firsts = [
        min(group, key=lambda seen: (seen.round_number, seen.model))
        for group in group_observations(observations)
    ]
    if not firsts:
        return 0.0
    brought = sum(empty_chair_models.get(first.round_number) == first.model for first in firsts)
    return brought / len(firsts)
