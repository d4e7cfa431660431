"""A drawn circle as a configuration."""

from __future__ import annotations

from firecircle.circle.config import FireCircleConfig
from firecircle.rotation.history import Draw


def rotated(config: FireCircleConfig, draw: Draw) -> FireCircleConfig:
    """The same circle with the drawn voices; a draw in shadow mode leaves it as it is."""
    if not draw.used:
        return config
    kept = {name: getattr(config, name) for name in type(config).model_fields}
    keeper = config.empty_chair_model if config.empty_chair_model in draw.selected else None
    return type(config)(
        **{
            **kept,
            "models": draw.selected,
            "circle_size": None,
            "reserves": tuple(reserve for reserve in config.reserves if reserve not in draw.selected),
            "empty_chair_model": keeper,
            # Whoever is fixed in the chair and was not drawn leaves it to the duty order.
            "empty_chair_rotation": config.empty_chair_rotation or keeper is None,
        }
    )
