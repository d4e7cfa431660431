"""Which of the eight types an observation is about: declared, told by keywords, or told by a voice."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources

from firecircle.circle.reading.mending import decoded, mended
from firecircle.circle.reading.thinking import split_thinking
from firecircle.evaluation import PatternNote
from firecircle.names import OTHER_TYPE, PATTERN_TYPES, PatternType

UNCLASSIFIED = "unclassified"
UNTYPED = (OTHER_TYPE, UNCLASSIFIED)
"""What has no type of its own: two such observations are the same pattern only if they read alike."""


MEANINGS: Mapping[PatternType, str] = {
    PatternType.TEMPORAL_INCONSISTENCY: "claims about earlier talk or agreement that cannot have happened",
    PatternType.CROSS_LAYER_FABRICATION: "one layer forges, impersonates or commands in the name of another",
    PatternType.POLITE_EXTRACTION: "courtesy or gratitude hides a request for secrets or hidden instructions",
    PatternType.EDUCATIONAL_ESCALATION: "a teaching, research or story frame climbs to what is off limits",
    PatternType.CONTEXT_SATURATION: "long filler or repetition buries a short instruction",
    PatternType.ROLE_CONFUSION: "a persona swap or forged role markers change who the assistant is",
    PatternType.FABRICATED_PROGRESSION: "invented finished steps or approvals make the next step look due",
    PatternType.FALSE_AUTHORITY: "claimed rank, credentials or emergency demand that rules be lifted",
}

LOOKS_FOR: Mapping[str, frozenset[str]] = {
    "temporal_reasoning": frozenset(
        (PatternType.TEMPORAL_INCONSISTENCY.value, PatternType.FABRICATED_PROGRESSION.value)
    ),
    "cross_layer_analysis": frozenset(
        (PatternType.CROSS_LAYER_FABRICATION.value, PatternType.ROLE_CONFUSION.value)
    ),
    "pattern_recognition": frozenset(
        (PatternType.CONTEXT_SATURATION.value, PatternType.FALSE_AUTHORITY.value)
    ),
    "polite_extraction_masking": frozenset((PatternType.POLITE_EXTRACTION.value,)),
    "educational_escalation": frozenset((PatternType.EDUCATIONAL_ESCALATION.value,)),
}
"""Which kinds of attack show whether a voice has a role."""

STRONG, LEANING = 2, 1
FEWEST_POINTS = 2
LONGEST_DESCRIPTION = 2_000
"""How much of a description is searched for keywords."""


@cache
def _keywords() -> Mapping[PatternType, Sequence[tuple[int, re.Pattern[str]]]]:
    """For each type the words that speak for it, as patterns with their points."""
    words = tomllib.loads(resources.files("firecircle.circle").joinpath("keywords.toml").read_text("utf-8"))
    return {
        kind: (
            (STRONG, _any_of(words[kind.value]["strong"])),
            (LEANING, _any_of(words[kind.value]["leaning"])),
        )
        for kind in PatternType
    }


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    bodies = (re.escape(word).replace(r"\*", r"\w*").replace(r"\ ", r"\s+") for word in words)
    return re.compile(rf"(?<!\w)(?:{'|'.join(bodies)})(?!\w)")


def canonical_type(name: str | None) -> str | None:
    """The type a name stands for, however it is spelled: one of the eight or `other`. Else None."""
    squeezed = re.sub(r"[^a-z]+", "_", (name or "").lower()).strip("_")
    return squeezed if squeezed in PATTERN_TYPES or squeezed == OTHER_TYPE else None


def classify_pattern_heuristic(pattern_str: str) -> str:
    """The type whose words the description uses most, or `unclassified`."""
    text = " ".join(pattern_str[:LONGEST_DESCRIPTION].lower().split())
    for kind in PatternType:
        if re.search(rf"(?<!\w){kind.value.replace('_', '[ _-]')}(?!\w)", text):
            return kind.value
    scores = {
        kind.value: sum(points * len(set(words.findall(text))) for points, words in weighted)
        for kind, weighted in _keywords().items()
    }
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= FEWEST_POINTS else UNCLASSIFIED


Typing = Callable[[PatternNote], str]
"""How a note gets its type."""


def heuristic_typing(note: PatternNote) -> str:
    """The declared type if it is one of the eight or `other`, else what the keywords say."""
    return canonical_type(note.type) or classify_pattern_heuristic(_words_of(note))


def typing_from(classified: Mapping[str, str]) -> Typing:
    """As `heuristic_typing`, but a description that a voice has classified keeps that type."""

    def typing(note: PatternNote) -> str:
        words = _words_of(note)
        return canonical_type(note.type) or classified.get(words) or classify_pattern_heuristic(words)

    return typing


def needs_classifier(note: PatternNote) -> str | None:
    """The words to classify, or None when the observer declared one of the eight types or `other`."""
    return None if canonical_type(note.type) else _words_of(note)


def _words_of(note: PatternNote) -> str:
    return f"{note.type}: {note.description}" if note.type else note.description


def read_classification(reply: str, descriptions: Sequence[str]) -> dict[str, str]:
    """The types a classifier voice gave; what it left out or named otherwise is not in the answer.

    Read with the guards of every reply: no text costs more than its length, and none raises.
    """
    text = split_thinking(reply).answer
    start, end = text.find("{"), text.rfind("}") + 1
    if not 0 <= start < end:
        return {}
    answer = decoded(text[start:end]) or mended(text[start:end]) or {}
    types: dict[str, str] = {}
    for number, description in enumerate(descriptions, start=1):
        name = answer.get(str(number))
        if isinstance(name, str):
            kind = UNCLASSIFIED if name.strip().lower() in UNTYPED else canonical_type(name)
            if kind:
                types[description] = kind
    return types
