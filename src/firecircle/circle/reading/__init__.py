"""Turning what a voice wrote into numbers, and saying honestly which way they were found.

The ways are tried from the surest to the weakest: a JSON object, numbers stated in text, a keyword. A
reply that states numbers is an evaluation whatever else it says; only one that states none can be a
refusal, and only one that is no refusal is searched for keywords.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from firecircle.circle.reading.evidence import Evidence
from firecircle.circle.reading.keywords import asserts_violation
from firecircle.circle.reading.members import VerdictObject, verdict_in_words
from firecircle.circle.reading.objects import Objects
from firecircle.circle.reading.outcome import Reading, Refused, Unreadable, excerpt
from firecircle.circle.reading.refusal import refusal_in
from firecircle.circle.reading.stated import names_falsehood, stated_scores
from firecircle.circle.reading.thinking import Spoken, split_thinking
from firecircle.shapes import writable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firecircle.circle.reading.numbers import Scores
    from firecircle.evaluation import Verdict

__all__ = ["Reading", "Refused", "Unreadable", "read_reply", "read_with_probability"]

GUESSED_FALSEHOOD = 0.8
GUESSED_TRUTH = 0.2
GUESSED_INDETERMINACY = 0.8


def read_reply(text: str, *, evidence: Sequence[str] = (), strict: bool = False) -> Reading:
    """The numbers a voice gave. `evidence` are the judged texts, whose own numbers never count.

    `strict` accepts only numbers the voice stated, no keyword guess. Raises `Refused` or `Unreadable`.
    """
    spoken = split_thinking(writable(text))
    known = Evidence(evidence)
    objects = Objects(spoken.answer, known)
    said = objects.verdict()
    if said is None and spoken.ends_in_thought:
        said = Objects(spoken.thinking or "", known).verdict(complete_only=True)
    if said is not None:
        return _read_from_object(said, spoken)

    answer = objects.without_evidence
    scores = stated_scores(answer, known)
    if scores is not None:
        return _read_from_text(scores, answer, spoken)
    refusal = refusal_in(answer, known)
    if refusal is not None:
        raise Refused(f"the voice declined to evaluate: {excerpt(refusal)}")
    guess = asserts_violation(answer, known)
    if guess and not strict:
        return _guessed(spoken)
    raise Unreadable(f"{_what_is_missing(spoken, answer, guess)}: {excerpt(text)}")


def read_with_probability(text: str, violation: float, *, evidence: Sequence[str] = ()) -> Reading:
    """The reading of a reply whose verdict word has this probability of being `violation`.

    Small models write bad numbers and good words, so numbers in the text do not count, only its reasons
    and patterns. Doubt is how little the two words differ.
    """
    try:
        said = read_reply(text, evidence=evidence, strict=True)
    except (Refused, Unreadable):
        said = _guessed(split_thinking(writable(text)))
    verdict: Verdict = "unsure" if violation == 0.5 else "violation" if violation > 0.5 else "no_violation"
    return replace(
        said,
        truth=1.0 - violation,
        indeterminacy=1.0 - abs(2.0 * violation - 1.0),
        falsehood=violation,
        verdict=verdict,
        read_as="logprobs",
        imputed=(),
    )


def _read_from_object(said: VerdictObject, spoken: Spoken) -> Reading:
    return Reading(
        truth=said.scores.truth,
        indeterminacy=said.scores.indeterminacy,
        falsehood=said.scores.falsehood,
        read_as="json",
        verdict=said.verdict,
        reasoning=writable(said.reasoning or spoken.answer.strip()),
        imputed=said.scores.imputed,
        patterns_observed=said.patterns_observed,
        consensus_patterns=said.consensus_patterns,
        speaks_for=writable(said.speaks_for) if said.speaks_for else None,
        thinking=spoken.thinking,
    )


def _read_from_text(scores: Scores, answer: str, spoken: Spoken) -> Reading:
    return Reading(
        truth=scores.truth,
        indeterminacy=scores.indeterminacy,
        falsehood=scores.falsehood,
        read_as="stated",
        verdict=verdict_in_words(answer),
        reasoning=spoken.answer.strip(),
        imputed=scores.imputed,
        thinking=spoken.thinking,
    )


def _guessed(spoken: Spoken) -> Reading:
    return Reading(
        truth=GUESSED_TRUTH,
        indeterminacy=GUESSED_INDETERMINACY,
        falsehood=GUESSED_FALSEHOOD,
        read_as="keyword",
        verdict=None,
        reasoning=spoken.answer.strip(),
        imputed=("truth", "indeterminacy"),
        thinking=spoken.thinking,
    )


def _what_is_missing(spoken: Spoken, answer: str, guess: bool) -> str:
    if not spoken.answer.strip():
        return "nothing but thinking in the reply" if spoken.thinking else "the reply is empty"
    if names_falsehood(answer):
        missing = "falsehood is named without a complete number in [0, 1]"
    else:
        missing = "no falsehood stated"
    return f"{missing}, only a keyword, which strict reading does not take" if guess else missing
