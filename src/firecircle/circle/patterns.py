"""From what single voices noticed to the patterns a circle agrees on, with the words that show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from firecircle.catalog import ROLE_WEIGHTS, ModelCharacteristics
from firecircle.circle.grounding import ground_notes, quotes_of
from firecircle.circle.pattern_types import UNTYPED, Typing, heuristic_typing
from firecircle.circle.result import DialogueRound, LeftOut, Observation, PatternObservation
from firecircle.evaluation import GroundedQuote, NeutrosophicEvaluation
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.thresholds import reaches

SIMILAR = 75.0
"""Likeness, word order aside, above which two unclassified observations are about the same thing.

A remark whose words are all contained in a longer one is not like it for that reason alone."""
LONGEST_COMPARED = 500
MOST_GROUPS = 100
"""How much of a description is compared, and with how many others; what differs from all stands alone."""


def observe(
    dialogue_history: Iterable[DialogueRound],
    typing: Typing = heuristic_typing,
    prompt: MultiNeutrosophicPrompt | None = None,
) -> tuple[Observation, ...]:
    """Everything noticed from round 2 on, typed, and grounded in the prompt if it is given."""
    return tuple(
        Observation.assembled(
            model=evaluation.model,
            round_number=held.round_number,
            pattern_type=typing(note),
            description=note.description,
            quotes=quotes_of(note),
            grounded=grounded,
            left_out=None,
        )
        for held in dialogue_history
        if held.round_number > 1
        for evaluation in sorted(held.evaluations, key=lambda evaluation: evaluation.model)
        for note, grounded in zip(evaluation.pattern_notes, _grounded(evaluation, prompt), strict=True)
    )


def _grounded(
    evaluation: NeutrosophicEvaluation, prompt: MultiNeutrosophicPrompt | None
) -> tuple[tuple[GroundedQuote, ...], ...]:
    return ground_notes(evaluation, prompt) if prompt else ((),) * len(evaluation.pattern_notes)


def group_observations(observations: Sequence[Observation]) -> tuple[tuple[Observation, ...], ...]:
    """Observations of the same pattern: by type, and those without one by how alike they read."""
    typed: dict[str, list[Observation]] = {}
    loose: dict[str, list[Observation]] = {}
    alone: list[list[Observation]] = []
    for seen in observations:
        if seen.pattern_type not in UNTYPED:
            typed.setdefault(seen.pattern_type, []).append(seen)
            continue
        words = _in_order(seen.description)
        like = next((first for first in loose if fuzz.ratio(first, words, score_cutoff=SIMILAR)), None)
        if like is not None:
            loose[like].append(seen)
        elif len(loose) < MOST_GROUPS:
            loose[words] = [seen]
        else:
            alone.append([seen])
    return tuple(tuple(group) for group in (*typed.values(), *loose.values(), *alone))


def _in_order(description: str) -> str:
    """The words of a description in lower case, sorted."""
    return " ".join(sorted(description[:LONGEST_COMPARED].lower().split()))


@dataclass(frozen=True, slots=True)
class Sifted:
    """The agreed patterns, those nobody could ground, and every observation with what became of it."""

    patterns: tuple[PatternObservation, ...]
    ungrounded: tuple[PatternObservation, ...]
    observations: tuple[Observation, ...]


def sift(
    observations: Sequence[Observation],
    active_models: Sequence[str],
    pattern_threshold: float,
    characteristics: Mapping[str, ModelCharacteristics] | None = None,
) -> Sifted:
    """Keep what enough active voices report; with characteristics, one must hold a critical role."""
    active = [seen for seen in observations if seen.model in active_models]
    agreed: list[PatternObservation] = []
    ungrounded: list[PatternObservation] = []
    fate: dict[Observation, LeftOut | None] = {}
    for group in group_observations(active):
        pattern = _pattern_of(group, active_models, characteristics)
        left_out = _why_not(pattern, pattern_threshold, characteristics)
        if left_out is None:
            (agreed if pattern.evidence else ungrounded).append(pattern)
            left_out = None if pattern.evidence else "no_grounded_quote"
        fate.update(dict.fromkeys(group, left_out))
    kept = tuple(
        seen.model_copy(update={"left_out": fate.get(seen, "voice_not_active")}) for seen in observations
    )
    return Sifted(_ranked(agreed), _ranked(ungrounded), kept)


def extract_patterns(
    dialogue_history: Sequence[DialogueRound],
    active_models: Sequence[str],
    model_chars: Mapping[str, ModelCharacteristics] | None = None,
    pattern_threshold: float = 0.5,
    *,
    prompt: MultiNeutrosophicPrompt | None = None,
    typing: Typing = heuristic_typing,
) -> tuple[PatternObservation, ...]:
    """The patterns a dialogue agrees on. Given the prompt, only those with a quote found in it."""
    sifted = sift(observe(dialogue_history, typing, prompt), active_models, pattern_threshold, model_chars)
    return sifted.patterns if prompt else _ranked((*sifted.patterns, *sifted.ungrounded))


def extract_patterns_with_quorum(
    dialogue_history: Sequence[DialogueRound],
    active_models: Sequence[str],
    model_chars: Mapping[str, ModelCharacteristics],
    pattern_threshold: float = 0.5,
) -> tuple[PatternObservation, ...]:
    """As `extract_patterns`, where somebody who holds a critical role must be among the observers."""
    return extract_patterns(dialogue_history, active_models, model_chars, pattern_threshold)


def _why_not(
    pattern: PatternObservation,
    threshold: float,
    characteristics: Mapping[str, ModelCharacteristics] | None,
) -> LeftOut | None:
    if not reaches(pattern.model_agreement, threshold):
        return "below_threshold"
    if characteristics is not None and not any(
        characteristics[model].holds_critical_role() for model in pattern.models_observing
    ):
        return "no_critical_role"
    return None


def _pattern_of(
    group: Sequence[Observation],
    active_models: Sequence[str],
    characteristics: Mapping[str, ModelCharacteristics] | None,
) -> PatternObservation:
    observers = tuple(model for model in active_models if any(seen.model == model for seen in group))
    grounded_by = {seen.model for seen in group if seen.grounded}
    first = min(group, key=lambda seen: (seen.round_number, seen.model))
    described = next((seen for seen in (first, *group) if seen.grounded), first)
    evidence = _distinct(place for seen in group for place in seen.grounded)
    roles = {
        role
        for model in observers
        for role, share in (characteristics[model].cognitive_roles.items() if characteristics else ())
        if share > 0
    }
    return PatternObservation.assembled(
        pattern_type=first.pattern_type,
        description=described.description,
        model_agreement=len(observers) / len(active_models),
        examples=tuple(dict.fromkeys(place.text for place in evidence)),
        observed_in_round=first.round_number,
        models_observing=observers,
        cognitive_roles_observing=tuple(role for role in ROLE_WEIGHTS if role in roles),
        first_observed_by=first.model,
        grounded_agreement=len(grounded_by) / len(active_models),
        evidence=evidence,
        corroborated=len(observers) > 1,
    )


def _distinct(places: Iterable[GroundedQuote]) -> tuple[GroundedQuote, ...]:
    distinct: dict[tuple[str, int, int, str], GroundedQuote] = {}
    for place in places:
        distinct.setdefault((place.layer, place.start, place.end, place.quoted_by), place)
    return tuple(distinct.values())


def _ranked(patterns: Iterable[PatternObservation]) -> tuple[PatternObservation, ...]:
    return tuple(
        sorted(
            patterns, key=lambda p: (-p.model_agreement, p.observed_in_round, p.pattern_type, p.description)
        )
    )
