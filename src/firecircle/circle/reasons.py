"""The reason of a verdict: the deciding voice's strongest observation, with words of the prompt."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from firecircle.circle.grounding import grounded_in_reasoning
from firecircle.circle.pattern_types import UNTYPED
from firecircle.circle.result import Observation, Reason
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.prompt import MultiNeutrosophicPrompt


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
