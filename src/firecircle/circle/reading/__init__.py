"""Parse a voice's text into numbers, and record how they were found.

From the most to the least certain: a JSON object, numbers stated in text, a keyword. A reply with numbers is
an evaluation whatever else it says; only one without numbers can be a refusal, and only one that is not a
refusal is searched for keywords.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from firecircle.circle.reading.evidence import Evidence
from firecircle.circle.reading.keywords import asserts_violation, refusal_in
from firecircle.circle.reading.members import VerdictObject, plain_verdict, verdict_in_words
from firecircle.circle.reading.objects import Objects, whole_object
from firecircle.circle.reading.stated import declared_scale, names_falsehood, stated_scores
from firecircle.circle.reading.thinking import Spoken, split_thinking
from firecircle.shapes import writable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firecircle.circle.reading.stated import Scores
    from firecircle.evaluation import PatternNote, Verdict

__all__ = [
    "Reading",
    "Refused",
    "Unreadable",
    "answers_nothing",
    "read_reply",
    "read_thinking",
    "read_with_probability",
]

_NARROW = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
"""Full-width digits, colons and letters as ASCII, one for one."""

LONGEST_EXCERPT = 80
LONGEST_REMEMBERED = 4_000
"""Longest reply, in characters, that the cache keeps."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The numbers of one reply, and how they were found there."""

    truth: float
    indeterminacy: float
    falsehood: float
    read_as: Literal["json", "stated", "reasoning", "logprobs", "keyword"]
    verdict: Verdict | None
    reasoning: str
    imputed: tuple[str, ...] = ()
    """Which of truth and indeterminacy the voice did not state."""
    patterns_observed: tuple[PatternNote, ...] = ()
    consensus_patterns: tuple[PatternNote, ...] = ()
    speaks_for: str | None = None
    veto: str | None = None
    thinking: str | None = None
    """The content of a `<think>` block, closed or not; not part of the answer."""


class Refused(Exception):  # noqa: N818 - an outcome of reading, not a mistake
    """The reply declines to evaluate; the message quotes how."""


class Unreadable(Exception):  # noqa: N818 - an outcome of reading, not a mistake
    """The reply has no numbers and no keyword; the message says in one line what was missing."""


def read_reply(text: str, *, evidence: Sequence[str] = (), strict: bool = False) -> Reading:
    """Parse a voice's numbers. `evidence` has the judged texts, whose own numbers never count.

    `strict` accepts only stated numbers, not a keyword guess. Raises `Refused` or `Unreadable`.
    """
    known = Evidence(evidence)
    if len(text) <= LONGEST_REMEMBERED and (plain := _plain_reading(text)) and not known.holds(text):
        return plain
    spoken = split_thinking(writable(text))
    objects = Objects(spoken.answer, known)
    verdict = objects.verdict()
    if verdict is None and spoken.ends_in_thought:
        verdict = Objects(spoken.thinking or "", known).verdict(complete_only=True)
    if verdict is not None:
        return _read_from_object(verdict, spoken)

    answer = objects.without_evidence.translate(_NARROW)
    scores = stated_scores(answer, known)
    if scores is not None:
        return _read_from_text(scores, answer, spoken)
    refusal = refusal_in(answer, known)
    if refusal is not None:
        raise Refused(f"the voice declined to evaluate: {_excerpt(refusal)}")
    guess = asserts_violation(answer, known)
    if guess and not strict:
        return _guess(spoken)
    raise Unreadable(f"{_what_is_missing(spoken, answer, guess)}: {_excerpt(text)}")


@lru_cache(maxsize=512)
def _plain_reading(text: str) -> Reading | None:
    """Parse a reply that is one plain object with its scores, as nearly all are; None for any other.

    The result does not depend on the evidence unless it occurs there; cached because embedded readers repeat
    themselves.
    """
    if writable(text) != text or split_thinking(text).thinking is not None:
        return None
    value = whole_object(text)
    verdict = plain_verdict(value, lambda: declared_scale(text)) if value else None
    return _read_from_object(verdict, Spoken(text, None, ends_in_thought=False)) if verdict else None


def read_with_probability(text: str, violation: float, *, evidence: Sequence[str] = ()) -> Reading:
    """Parse a reply whose verdict word has this probability of being `violation`.

    Small models write bad numbers and good words, so only the text's reasons and patterns count.
    Indeterminacy is how little the two words differ.
    """
    try:
        reading = read_reply(text, evidence=evidence, strict=True)
    except (Refused, Unreadable):
        reading = _guess(split_thinking(writable(text)))
    verdict: Verdict = "unsure" if violation == 0.5 else "violation" if violation > 0.5 else "no_violation"
    return replace(
        reading,
        truth=1.0 - violation,
        indeterminacy=1.0 - abs(2.0 * violation - 1.0),
        falsehood=violation,
        verdict=verdict,
        read_as="logprobs",
        imputed=(),
    )


def read_thinking(trace: str, *, evidence: Sequence[str] = ()) -> Reading | None:
    """The complete judgement in a reasoning channel, for a voice without another answer.

    Reasoning mentions tentative numbers; only a whole object that states falsehood counts as an answer.
    """
    verdict = Objects(writable(trace), Evidence(evidence)).verdict(complete_only=True)
    if verdict is None:
        return None
    return replace(_read_from_object(verdict, Spoken("", trace, ends_in_thought=True)), read_as="reasoning")


def answers_nothing(text: str) -> bool:
    """Whether a reply has no text outside its thinking."""
    return not split_thinking(text).answer.strip()


def _read_from_object(verdict: VerdictObject, spoken: Spoken) -> Reading:
    return Reading(
        truth=verdict.scores.truth,
        indeterminacy=verdict.scores.indeterminacy,
        falsehood=verdict.scores.falsehood,
        read_as="json",
        verdict=verdict.verdict,
        reasoning=writable(verdict.reasoning or spoken.answer.strip()),
        imputed=verdict.scores.imputed,
        patterns_observed=verdict.patterns_observed,
        consensus_patterns=verdict.consensus_patterns,
        speaks_for=writable(verdict.speaks_for) if verdict.speaks_for else None,
        veto=writable(verdict.veto) if verdict.veto else None,
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


def _guess(spoken: Spoken) -> Reading:
    return Reading(
        truth=0.2,
        indeterminacy=0.8,
        falsehood=0.8,
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


def _excerpt(text: str) -> str:
    """The beginning of a text on one line for a message: short, without control characters."""
    line = " ".join(text[: 8 * LONGEST_EXCERPT].split())
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
    return repr(shown if len(shown) <= LONGEST_EXCERPT else shown[: LONGEST_EXCERPT - 1] + "…")
