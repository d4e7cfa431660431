"""Choose the voices of a circle: participation history, weighted draws, and the empty chair."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firecircle.rotation.drawing import verify_draw
    from firecircle.rotation.empty_chair import EmptyChairProtocol
    from firecircle.rotation.selector import WeightedVoiceSelector
    from firecircle.rotation.tracker import MemoryHistory, ParticipationHistory, VoiceHistoryTracker

__all__ = [
    "EmptyChairProtocol",
    "MemoryHistory",
    "ParticipationHistory",
    "VoiceHistoryTracker",
    "WeightedVoiceSelector",
    "verify_draw",
]

_HOMES = {
    "EmptyChairProtocol": "empty_chair",
    "MemoryHistory": "tracker",
    "ParticipationHistory": "tracker",
    "VoiceHistoryTracker": "tracker",
    "WeightedVoiceSelector": "selector",
    "verify_draw": "drawing",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use: a circle without rotation needs none of them."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
