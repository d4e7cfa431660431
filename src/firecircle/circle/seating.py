"""How the voices of a judgement came to sit there, and what their set is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from firecircle.names import DEFAULT_MODELS, EMBEDDED_MODELS, NEURAL_MODEL
from firecircle.shapes import Shape, Text

SeatingKind = Literal["default", "chosen", "rotated"]
"""Nobody was named, somebody was, or rotation drew them from a pool."""

_NAMED_SETS = {
    EMBEDDED_MODELS: "six embedded voices",
    (*EMBEDDED_MODELS, NEURAL_MODEL): "seven embedded voices",
    DEFAULT_MODELS: "three hosted voices",
}


class Seating(Shape):
    """Kept with every judgement: the same prompt may get another verdict from another set of voices."""

    kind: SeatingKind
    set_name: Text

    @classmethod
    def of(cls, models: Sequence[str], kind: SeatingKind = "chosen") -> Seating:
        """How these models sit."""
        return cls(kind=kind, set_name=_NAMED_SETS.get(tuple(models)) or _counted(models))

    def __str__(self) -> str:
        """In a few words, such as `seven embedded voices (default)`."""
        return f"{self.set_name} ({self.kind})"


def _counted(models: Sequence[str]) -> str:
    return models[0] if len(models) == 1 else f"{len(models)} voices"
