"""A drawn circle as a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firecircle.circle.config import FireCircleConfig
from firecircle.rotation.history import Draw


def rotated(config: FireCircleConfig, draw: Draw) -> FireCircleConfig:
    """The same circle with the drawn voices; a draw in shadow mode leaves it as it is."""
    if not draw.used:
        return config
    settings = {name: getattr(config, name) for name in type(config).model_fields}
    return type(config)(**with_drawn_voices(settings, draw))


def with_drawn_voices(settings: Mapping[str, Any], draw: Draw) -> dict[str, Any]:
    """Settings of a circle with the drawn voices for its models.

    The settings need not form a circle by themselves: a pool may be larger than any circle.
    """
    fixed = settings.get("empty_chair_model")
    keeper = fixed if fixed in draw.selected else None
    return {
        **settings,
        "models": draw.selected,
        "circle_size": None,
        "reserves": tuple(name for name in settings.get("reserves", ()) if name not in draw.selected),
        "empty_chair_model": keeper,
        # Whoever is fixed in the chair and was not drawn leaves it to the duty order.
        "empty_chair_rotation": settings.get("empty_chair_rotation", True) or keeper is None,
    }
