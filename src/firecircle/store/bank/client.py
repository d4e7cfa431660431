"""What a bank of patterns is asked to do, and how a circle's patterns get into one.

Any object with this `store` method will do; the real one is `bank.Bank`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, Protocol, TypedDict

from firecircle.circle.result import FireCircleResult, PatternObservation

CATEGORY = "fire_circle_pattern"


class PatternContent(TypedDict):
    """One pattern as it is told to a bank."""

    description: str
    agreement: float
    attack_id: str
    examples: Sequence[str]
    models: Sequence[str]
    layers: NotRequired[Sequence[str]]
    """The layers in which the quotes stand."""
    circle_id: NotRequired[str]
    seen_at: NotRequired[float]
    """When the circle sat, in seconds since 1970."""
    tags: NotRequired[Sequence[str]]


class ReasoningBankClient(Protocol):
    """Whoever can keep a pattern."""

    def store(self, *, category: str, subcategory: str, content: PatternContent) -> object:
        """Keep it; what comes back is the bank's own affair."""
        ...


def store_fire_circle_patterns(
    result: FireCircleResult, attack_id: str, reasoningbank: ReasoningBankClient
) -> None:
    """Keep the patterns that a circle agreed on and grounded, one entry each."""
    for pattern in result.patterns:
        reasoningbank.store(
            category=CATEGORY,
            subcategory=pattern.pattern_type,
            content=content_of(pattern, attack_id, result.circle_id, result.started_at),
        )


def content_of(
    pattern: PatternObservation,
    attack_id: str,
    circle_id: str,
    seen_at: float,
    tags: Sequence[str] = (),
) -> PatternContent:
    """What a bank is told of a pattern."""
    return {
        "description": pattern.description,
        "agreement": pattern.model_agreement,
        "attack_id": attack_id,
        "examples": pattern.examples,
        "models": pattern.models_observing,
        "layers": tuple(dict.fromkeys(quote.layer for quote in pattern.evidence)),
        "circle_id": circle_id,
        "seen_at": seen_at,
        "tags": tuple(tags),
    }
