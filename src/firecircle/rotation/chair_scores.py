"""What the empty chair brought: patterns nobody had seen before it, evidence for them, another view."""

from __future__ import annotations

from rapidfuzz import fuzz

from firecircle.circle.patterns import group_observations
from firecircle.circle.result import DialogueRound, FireCircleResult
from firecircle.shapes import Shape, Text, Unit


class ChairContribution(Shape):
    """One round's chair, measured on what was really said."""

    round_number: int
    model: Text
    speaks_for: Text | None
    """Whom it spoke for, in its own words; None when it did not say."""
    brought: Unit
    """Of the patterns first seen in this round with a quote that was found, the share it saw first."""
    grounded: Unit
    """Of its own observations, the share with a quote that was found."""
    different: Unit
    """How little its reasoning reads like that of the nearest other voice of the round."""
    falsehood_apart: float
    """Its falsehood minus the mean of the others'."""
    score: Unit
    """The mean of brought, grounded and different."""


def chair_contributions(result: FireCircleResult) -> tuple[ChairContribution, ...]:
    """The contributions of all rounds with an occupied chair."""
    return tuple(
        _contribution(result, held, chair)
        for held in result.dialogue_history
        if (chair := held.occupied_chair) is not None
    )


def _contribution(result: FireCircleResult, held: DialogueRound, chair: str) -> ChairContribution:
    said = next(said for said in held.evaluations if said.model == chair)
    others = [other for other in held.evaluations if other.model != chair]
    own = [
        seen for seen in result.observations if seen.model == chair and seen.round_number == held.round_number
    ]
    brought = _brought(result, held.round_number, chair)
    grounded = sum(bool(seen.grounded) for seen in own) / len(own) if own else 0.0
    alike = max((fuzz.token_set_ratio(said.reasoning, other.reasoning) for other in others), default=0.0)
    different = 1.0 - alike / 100 if said.reasoning else 0.0
    mean = sum(other.falsehood for other in others) / len(others) if others else said.falsehood
    return ChairContribution(
        round_number=held.round_number,
        model=chair,
        speaks_for=said.speaks_for or None,
        brought=brought,
        grounded=grounded,
        different=different,
        falsehood_apart=said.falsehood - mean,
        score=(brought + grounded + different) / 3,
    )


def _brought(result: FireCircleResult, round_number: int, chair: str) -> float:
    grounded = [seen for seen in result.observations if seen.grounded]
    groups = group_observations(sorted(grounded, key=lambda seen: seen.round_number))
    new = [group for group in groups if min(seen.round_number for seen in group) == round_number]
    mine = sum(
        # As with the influence of the chair: within a round the order of the ids decides who was first.
        min(seen.model for seen in group if seen.round_number == round_number) == chair
        for group in new
    )
    return mine / len(new) if new else 0.0
