"""The patterns of a circle: their quotes, each told once, and what was reported without becoming one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from firecircle.circle.panel import Panel
from firecircle.circle.result import FireCircleResult, Observation, PatternObservation
from firecircle.evaluation import GroundedQuote
from firecircle.metrics import ReciprocityMetrics
from firecircle.telling.words import counted

Judged = FireCircleResult | Panel | ReciprocityMetrics
"""Whatever has patterns and knows how many voices were asked."""


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
    """Observations whose type is shown nowhere else, one group for each type."""
    agreed = {pattern.pattern_type for pattern in (*result.all_patterns, *result.ungrounded_patterns)}
    observations = [seen for seen in result.observations if seen.left_out and seen.pattern_type not in agreed]
    observations.sort(key=lambda seen: seen.pattern_type)
    return tuple(tuple(group) for _, group in groupby(observations, key=lambda seen: seen.pattern_type))


def agreement_words(pattern: PatternObservation, judged: Judged) -> str:
    """How many of how many voices hold it to the end."""
    active, convened = _voices(judged)
    voices = counted(active, "voice") if active == convened else f"{active} active ({convened} convened)"
    share = agreement_share(pattern, judged)
    percent = "" if share is None or not pattern.corroborated else f" ({share:.0%})"
    return f"{len(pattern.held_to_the_end)} of {voices}{percent}"


def observer_words(pattern: PatternObservation, name: Callable[[str], str]) -> str:
    """Who named it unaided, who after reading of it, who withdrew it, and who quoted the same words."""
    first = f"first {name(pattern.first_observed_by)} in round {pattern.observed_in_round}"
    unaided = [model for model in pattern.independent_observers if model != pattern.first_observed_by]
    repeated = [
        model
        for model in pattern.models_observing
        if model not in (pattern.first_observed_by, *pattern.independent_observers)
    ]
    withdrawn = [model for model in pattern.models_observing if model not in pattern.held_to_the_end]
    others = [model for model in pattern.same_words if model not in pattern.models_observing]
    parts = (
        ("independently by", unaided),
        ("after reading of it by", repeated),
        ("withdrawn by", withdrawn),
        ("the same words quoted by", others),
    )
    return "; ".join([first, *(f"{words} {', '.join(map(name, who))}" for words, who in parts if who)])


def agreement_share(pattern: PatternObservation, judged: Judged) -> float | None:
    """The share of all voices; None where some are missing and nobody knows what they would have said."""
    active, convened = _voices(judged)
    is_over = not isinstance(judged, FireCircleResult) or judged.consensus is not None
    return pattern.model_agreement if active == convened and is_over else None


def _voices(judged: Judged) -> tuple[int, int]:
    """How many voices are active, and how many were asked."""
    if isinstance(judged, FireCircleResult):
        return len(judged.active_models), len(judged.config.models) + len(judged.substitutions)
    return len(judged.evaluations), len(judged.evaluations) + len(judged.failures)
