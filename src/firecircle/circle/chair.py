"""Who holds the empty chair in which round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firecircle.circle.config import FireCircleConfig


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
