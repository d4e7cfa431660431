"""How well a voice fits a domain: what it is declared to bring where it counts, and how it did there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from firecircle.catalog import ROLE_WEIGHTS, ModelCharacteristics
from firecircle.rotation.domains import domain_of
from firecircle.rotation.tracker import DomainStats, VoiceStats

DECLARED_COUNTS_AS = 5
"""The declaration weighs as much as so many measured sittings."""


def expertise_of(voice: ModelCharacteristics, domain: str, here: DomainStats | None = None) -> float:
    """From 0 to 1: the declared contributions by what matters in the domain, then its own quality there."""
    lenses = domain_of(domain).lenses
    weight = {role: ROLE_WEIGHTS[role] * lenses.get(role, 1.0) for role in ROLE_WEIGHTS}
    declared = sum(weight[role] * voice.cognitive_roles.get(role, 0.0) for role in weight)
    declared /= sum(weight.values())
    if here is None or here.quality is None:
        return declared
    measured = here.measured
    return (DECLARED_COUNTS_AS * declared + measured * here.quality) / (DECLARED_COUNTS_AS + measured)


def ranked_for(
    domain: str, voices: Iterable[ModelCharacteristics], stats: Mapping[str, VoiceStats]
) -> list[tuple[str, float]]:
    """The voices with their expertise, the best for this domain first."""
    fit = []
    for voice in voices:
        its = stats.get(voice.model_id)
        fit.append((voice.model_id, expertise_of(voice, domain, its.domains.get(domain) if its else None)))
    return sorted(fit, key=lambda one: (-one[1], one[0]))
