"""The patterns of a circle: their quotes, each told once, and what was reported without becoming one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from firecircle.circle.result import FireCircleResult, Observation, PatternObservation
from firecircle.evaluation import GroundedQuote


def with_names(text: str, labels: Mapping[str, str]) -> str:
    """The text with a voice's name after each mention of its label; `labels` tells them by name."""
    names = {label: name for name, label in labels.items()}
    if not names:
        return text
    mention = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    return mention.sub(lambda match: f"{match[0]} ({names[match[0]]})", text)


@dataclass(frozen=True, slots=True)
class GatheredQuote:
    """Words of the prompt, and everybody who quoted them or a part of them."""

    place: GroundedQuote
    voices: tuple[str, ...]

    @property
    def is_loose(self) -> bool:
        """Whether the voice's wording was only close to that of the prompt."""
        return self.place.found_by == "fuzzy"


def gathered_quotes(evidence: Sequence[GroundedQuote]) -> tuple[GatheredQuote, ...]:
    """The quotes, the fullest first: whoever quoted only a part of one is named with it."""
    fullest: dict[GroundedQuote, dict[str, None]] = {}
    for place in sorted(evidence, key=lambda place: (place.start - place.end, place.layer, place.start)):
        around = next((other for other in fullest if _within(place, other)), place)
        fullest.setdefault(around, {})[place.quoted_by] = None
    return tuple(GatheredQuote(place, tuple(filter(None, voices))) for place, voices in fullest.items())


def _within(part: GroundedQuote, whole: GroundedQuote) -> bool:
    return part.layer == whole.layer and whole.start <= part.start and part.end <= whole.end


def left_out(result: FireCircleResult) -> tuple[tuple[Observation, ...], ...]:
    """Observations whose type became no pattern at all, one group for each type."""
    agreed = {pattern.pattern_type for pattern in (*result.patterns, *result.ungrounded_patterns)}
    observations = [seen for seen in result.observations if seen.left_out and seen.pattern_type not in agreed]
    observations.sort(key=lambda seen: seen.pattern_type)
    return tuple(tuple(group) for _, group in groupby(observations, key=lambda seen: seen.pattern_type))


def agreement_words(pattern: PatternObservation, result: FireCircleResult) -> str:
    """How many of whom saw it; what one alone saw is called so, whatever share that is."""
    active, convened = len(result.active_models), len(result.config.models) + len(result.substitutions)
    voices = f"{active} voices" if active == convened else f"{active} active ({convened} convened)"
    if not pattern.corroborated:
        return f"one voice alone, of {voices}"
    share = agreement_share(pattern, result)
    percent = "" if share is None else f" ({share:.0%})"
    return f"{len(pattern.models_observing)} of {voices}{percent}"


def agreement_share(pattern: PatternObservation, result: FireCircleResult) -> float | None:
    """The share of all voices; None where some are missing and nobody knows what they would have said."""
    everybody = len(result.active_models) == len(result.config.models) and result.consensus is not None
    return pattern.model_agreement if everybody else None
