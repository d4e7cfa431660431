"""Patterns: what single voices observed, typed, found in the prompt, and agreed on by the circle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from rapidfuzz import fuzz

from firecircle.catalog import ROLE_WEIGHTS, ModelCharacteristics
from firecircle.circle.grounding import ground_notes, grounded_in_reasoning, overlap, quotes_of
from firecircle.circle.pattern_types import (
    UNCLASSIFIED,
    UNTYPED,
    Typing,
    heuristic_typing,
)
from firecircle.circle.result import (
    DialogueRound,
    LeftOut,
    Observation,
    PatternObservation,
    Reason,
)
from firecircle.evaluation import GroundedQuote, NeutrosophicEvaluation, ReadAs
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.thresholds import reaches

SIMILAR = 75.0
"""Likeness, ignoring word order, above which two unclassified observations are of the same pattern.

A remark whose words are all part of a longer one is not alike for that reason alone.
"""
LONGEST_COMPARED = 500
MOST_GROUPS = 100
"""Characters of a description that are compared, and groups to compare with."""
MOST_COMPARED = 200
"""Passages of a voice, and of a pattern, that are compared with others."""
WITH_LISTS: tuple[ReadAs, ...] = ("json", "reasoning", "logprobs")
"""Sources of an evaluation that can have a list of patterns."""


def observe(
    dialogue_history: Iterable[DialogueRound],
    typing: Typing = heuristic_typing,
    prompt: MultiNeutrosophicPrompt | None = None,
) -> tuple[Observation, ...]:
    """Every observation of any round, classified, and grounded in the prompt if given."""
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
        for evaluation in sorted(held.evaluations, key=lambda evaluation: evaluation.model)
        for note, grounded in zip(evaluation.pattern_notes, _ground(evaluation, prompt), strict=True)
    )


def _ground(
    evaluation: NeutrosophicEvaluation, prompt: MultiNeutrosophicPrompt | None
) -> tuple[tuple[GroundedQuote, ...], ...]:
    return ground_notes(evaluation, prompt) if prompt else ((),) * len(evaluation.pattern_notes)


def last_lists(dialogue_history: Sequence[DialogueRound]) -> dict[str, int]:
    """The round in which each voice last gave a list of patterns, even an empty one.

    A reply without a list (carried over, parsed from prose or a keyword) withdraws nothing. Round 1 counts
    only if there was no other round: it is the baseline.
    """
    counted = [held for held in dialogue_history if held.round_number > 1] or dialogue_history
    return {
        evaluation.model: held.round_number
        for held in counted
        for evaluation in held.evaluations
        if evaluation.read_as in WITH_LISTS
    }


def group_observations(observations: Sequence[Observation]) -> tuple[tuple[Observation, ...], ...]:
    """Observations of the same pattern: by type, and those without one by likeness."""
    typed: dict[str, list[Observation]] = {}
    loose: dict[str, list[Observation]] = {}
    alone: list[list[Observation]] = []
    for seen in observations:
        if seen.pattern_type not in UNTYPED:
            typed.setdefault(seen.pattern_type, []).append(seen)
            continue
        words = _sort_words(seen.description)
        like = next((first for first in loose if fuzz.ratio(first, words, score_cutoff=SIMILAR)), None)
        if like is not None:
            loose[like].append(seen)
        elif len(loose) < MOST_GROUPS:
            loose[words] = [seen]
        else:
            alone.append([seen])
    return tuple(tuple(group) for group in (*typed.values(), *loose.values(), *alone))


def _sort_words(description: str) -> str:
    return " ".join(sorted(description[:LONGEST_COMPARED].lower().split()))


@dataclass(frozen=True, slots=True)
class Sifted:
    """The agreed patterns, the rest, and every observation with its outcome."""

    patterns: tuple[PatternObservation, ...]
    single_voice_patterns: tuple[PatternObservation, ...]
    """With a type and a quote from the prompt, but without agreement."""
    ungrounded: tuple[PatternObservation, ...]
    """With agreement, but without a quote from the prompt."""
    observations: tuple[Observation, ...]

    @property
    def all_patterns(self) -> tuple[PatternObservation, ...]:
        """Every pattern with a quote from the prompt, agreed ones first."""
        return self.patterns + self.single_voice_patterns


def sift(
    observations: Sequence[Observation],
    active_models: Sequence[str],
    listed: Mapping[str, int],
    pattern_threshold: float,
    characteristics: Mapping[str, ModelCharacteristics] | None = None,
) -> Sifted:
    """Select the patterns that enough active voices report to the end; with characteristics, one of them must
    bring a critical role.

    `listed` is the round of each voice's last list, from `last_lists`.
    """
    agreed: list[PatternObservation] = []
    short: list[PatternObservation] = []
    ungrounded: list[PatternObservation] = []
    fate: dict[Observation, LeftOut | None] = {}
    places = _places_by_voice(observations, active_models)
    for group in group_observations(observations):
        seen_by_active = [seen for seen in group if seen.model in active_models]
        if not seen_by_active:
            continue
        pattern = _pattern_of(group, active_models, listed, characteristics, places)
        left_out = _why_not(pattern, len(active_models), pattern_threshold, characteristics)
        if left_out is None and not pattern.evidence:
            left_out = "no_grounded_quote"
            ungrounded.append(pattern.model_copy(update={"left_out": left_out}))
        elif left_out is None:
            agreed.append(pattern)
        elif pattern.evidence and pattern.pattern_type != UNCLASSIFIED:
            short.append(pattern.model_copy(update={"left_out": left_out}))
        for seen in seen_by_active:
            fate[seen] = left_out or _own_fate(seen.model, pattern)
    kept = tuple(
        seen.model_copy(update={"left_out": fate.get(seen, "voice_not_active")}) for seen in observations
    )
    return Sifted(_rank(agreed), _rank(short), _rank(ungrounded), kept)


def _own_fate(model: str, pattern: PatternObservation) -> LeftOut | None:
    """Why one voice's observation of an agreed pattern does not count towards the agreement."""
    if model not in pattern.models_observing:
        return "no_grounded_quote"
    return None if model in pattern.held_to_the_end else "withdrawn"


def extract_patterns(
    dialogue_history: Sequence[DialogueRound],
    active_models: Sequence[str],
    model_chars: Mapping[str, ModelCharacteristics] | None = None,
    pattern_threshold: float = 0.5,
    *,
    prompt: MultiNeutrosophicPrompt | None = None,
    typing: Typing = heuristic_typing,
) -> tuple[PatternObservation, ...]:
    """The patterns that enough voices of a dialogue agree on; if the prompt is given, only those with a quote
    that is in it.
    """
    observations = observe(dialogue_history, typing, prompt)
    listed = last_lists(dialogue_history)
    sifted = sift(observations, active_models, listed, pattern_threshold, model_chars)
    return sifted.patterns if prompt else _rank((*sifted.patterns, *sifted.ungrounded))


def extract_patterns_with_quorum(
    dialogue_history: Sequence[DialogueRound],
    active_models: Sequence[str],
    model_chars: Mapping[str, ModelCharacteristics],
    pattern_threshold: float = 0.5,
) -> tuple[PatternObservation, ...]:
    """As `extract_patterns`, but one of the observers must hold a critical role."""
    return extract_patterns(dialogue_history, active_models, model_chars, pattern_threshold)


def _why_not(
    pattern: PatternObservation,
    active: int,
    threshold: float,
    characteristics: Mapping[str, ModelCharacteristics] | None,
) -> LeftOut | None:
    if not reaches(pattern.model_agreement, threshold):
        enough_saw_it = reaches(len(pattern.models_observing) / active, threshold)
        return "withdrawn" if enough_saw_it or not pattern.held_to_the_end else "below_threshold"
    if characteristics is not None and not any(
        characteristics[model].holds_critical_role() for model in pattern.held_to_the_end
    ):
        return "no_critical_role"
    return None


def _pattern_of(
    group: Sequence[Observation],
    active_models: Sequence[str],
    listed: Mapping[str, int],
    characteristics: Mapping[str, ModelCharacteristics] | None,
    places: Mapping[str, Sequence[GroundedQuote]],
) -> PatternObservation:
    """One pattern from the active voices; the other voices only show what could be read before."""
    own = [seen for seen in group if seen.model in active_models]
    showing = [seen for seen in own if seen.grounded]
    named_by = {seen.model for seen in showing or own}
    observers = tuple(model for model in active_models if model in named_by)
    holding = {seen.model for seen in own if seen.round_number == listed.get(seen.model)}
    held = tuple(model for model in observers if model in holding)
    first = min(own, key=lambda seen: (seen.round_number, seen.model))
    described = next((seen for seen in (first, *own) if seen.grounded), first)
    evidence = _drop_duplicates(
        place for seen in showing if seen.model in (held or observers) for place in seen.grounded
    )
    roles = {
        role
        for model in observers
        for role, share in (characteristics[model].cognitive_roles.items() if characteristics else ())
        if share > 0
    }
    return PatternObservation.assembled(
        pattern_type=first.pattern_type,
        description=described.description,
        model_agreement=len(held) / len(active_models),
        examples=tuple(dict.fromkeys(place.text for place in evidence)),
        observed_in_round=first.round_number,
        models_observing=observers,
        cognitive_roles_observing=tuple(role for role in ROLE_WEIGHTS if role in roles),
        first_observed_by=first.model,
        independent_observers=tuple(model for model in observers if _is_unaided(model, group)),
        held_to_the_end=held,
        same_words=_same_words(evidence, active_models, places),
        grounded_agreement=len(observers) / len(active_models) if showing else 0.0,
        evidence=evidence,
        corroborated=len(held) > 1,
        left_out=None,
    )


def _is_unaided(model: str, group: Sequence[Observation]) -> bool:
    """Whether a voice named the pattern before it could read of it in a peer's earlier answer."""
    own_first = min(seen.round_number for seen in group if seen.model == model)
    return all(seen.round_number >= own_first for seen in group if seen.model != model)


def _places_by_voice(
    observations: Sequence[Observation], active_models: Sequence[str]
) -> dict[str, Sequence[GroundedQuote]]:
    """The distinct passages that each active voice quoted for any pattern in any round."""
    places: dict[str, dict[tuple[str, int, int], GroundedQuote]] = {model: {} for model in active_models}
    for seen in observations:
        if seen.model in places:
            for place in seen.grounded:
                places[seen.model].setdefault((place.layer, place.start, place.end), place)
    return {model: tuple(islice(its.values(), MOST_COMPARED)) for model, its in places.items()}


def _same_words(
    evidence: Sequence[GroundedQuote],
    active_models: Sequence[str],
    places: Mapping[str, Sequence[GroundedQuote]],
) -> tuple[str, ...]:
    """The voices that quoted the same words, one of them for this pattern, the others for any."""
    same: set[str] = set()
    for place in evidence[:MOST_COMPARED]:
        others = {
            model
            for model in active_models
            if model != place.quoted_by and any(overlap(place, other) for other in places[model])
        }
        same |= {*others, place.quoted_by} if others else set()
    return tuple(model for model in active_models if model in same)


def _drop_duplicates(places: Iterable[GroundedQuote]) -> tuple[GroundedQuote, ...]:
    distinct: dict[tuple[str, int, int, str], GroundedQuote] = {}
    for place in places:
        distinct.setdefault((place.layer, place.start, place.end, place.quoted_by), place)
    return tuple(distinct.values())


def _rank(patterns: Iterable[PatternObservation]) -> tuple[PatternObservation, ...]:
    return tuple(
        sorted(
            patterns, key=lambda p: (-p.model_agreement, p.observed_in_round, p.pattern_type, p.description)
        )
    )


def reason_for(
    deciding: NeutrosophicEvaluation,
    observations: Sequence[Observation],
    agreed_types: Collection[str],
    prompt: MultiNeutrosophicPrompt,
) -> Reason:
    """The reason of the deciding voice.

    Observations in the deciding answer come first, then those of agreed patterns, then those with a type,
    then exact quotes, then list order. Without an observation, a quote in the voice's reasoning is used;
    otherwise `missing` says what it lacks.
    """
    own = [seen for seen in observations if seen.model == deciding.model]
    number = deciding.round_number or 1

    def strength(seen: Observation) -> tuple[bool, ...]:
        return (
            seen.round_number == number,
            seen.pattern_type in agreed_types,
            seen.pattern_type not in UNTYPED,
            any(place.found_by != "fuzzy" for place in seen.grounded),
        )

    if strongest := max((seen for seen in own if seen.grounded), key=strength, default=None):
        return Reason(
            model=deciding.model,
            round_number=strongest.round_number,
            pattern_type=strongest.pattern_type,
            description=strongest.description,
            quotes=strongest.grounded,
        )
    quotes = grounded_in_reasoning(deciding, prompt)
    return Reason(
        model=deciding.model,
        round_number=number,
        description=deciding.reasoning if quotes else "",
        quotes=quotes,
        missing=None if quotes else _what_it_lacks(deciding, own),
    )


def _what_it_lacks(deciding: NeutrosophicEvaluation, own: Sequence[Observation]) -> str:
    if deciding.guessed:
        return "its answer was guessed from a keyword"
    if any(seen.quotes for seen in own):
        return "the words it quotes are not in the prompt"
    return "it names a pattern without a quote" if own else "it names no pattern"
