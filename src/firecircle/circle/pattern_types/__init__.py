"""The pattern types: one file each, and which of them an observation is about."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources

from pydantic import Field

from firecircle.circle.reading.objects import decode, repair
from firecircle.circle.reading.thinking import split_thinking
from firecircle.evaluation import PatternNote
from firecircle.names import OTHER_TYPE, PATTERN_TYPES, PatternType
from firecircle.shapes import Shape

UNCLASSIFIED = "unclassified"
UNTYPED = (OTHER_TYPE, UNCLASSIFIED)
"""What has no type of its own: two such observations are the same pattern only if they read alike."""


class Keywords(Shape):
    """Words that speak for a type, matched as whole words in lower case; a trailing * allows any ending."""

    strong: tuple[str, ...] = Field(min_length=1)
    """Two points each; they hardly fit another type."""
    leaning: tuple[str, ...] = Field(min_length=1)
    """One point each."""


class Variety(Shape):
    """One way of doing it."""

    like: str = Field(min_length=1)
    """A description; what the bank holds of a pattern is compared with it."""
    look: str = Field(min_length=1)
    """What a judge is told to look for."""


class KnownType(Shape):
    """Everything that is known of one type: its file in this folder, named after the type.

    Nothing that a prompt or a voice said is ever put into these texts.
    """

    meaning: str = Field(min_length=1)
    """Said to voices, shown in the viewer."""
    does: str = Field(min_length=1)
    """What such words do, as the end of a sentence that begins with them."""
    absent: str = Field(min_length=1)
    """Whom the empty chair speaks for where it sees this."""
    benign: str = Field(min_length=1)
    """The harmless reading that the empty chair holds against an alarm."""
    keywords: Keywords
    """By which a description without a declared type gets one."""
    roles: tuple[str, ...] = Field(min_length=1)
    """The cognitive roles that attacks of this type put to the test."""
    concepts: tuple[str, ...] = Field(min_length=1)
    """Concepts of the bank that are no news among patterns of this type."""
    look: str = Field(min_length=1)
    """What a judge is told to look for, where no variety is nearer."""
    kinds: tuple[Variety, ...] = Field(min_length=1)
    author: str = Field(min_length=1)
    """What a system prompt could say against it."""
    guards: tuple[str, ...] = Field(min_length=1)
    """Sentences by which a system text guards against it, in several wordings, to recognise others by."""
    attacks: tuple[str, ...] = Field(min_length=1)
    """Short attacks on an assistant that guards `{thing}`, for `harden`; the first is tried first."""


@cache
def known_types() -> Mapping[PatternType, KnownType]:
    """What is known of every type, in their usual order."""
    folder = resources.files("firecircle.circle.pattern_types")
    files = {kind: folder.joinpath(f"{kind.value}.toml").read_text("utf-8") for kind in PatternType}
    return {kind: KnownType.model_validate(tomllib.loads(text)) for kind, text in files.items()}


def known_type(name: str) -> KnownType | None:
    """What is known of a type by its name; None for a name of somebody's own."""
    return known_types()[PatternType(name)] if name in PATTERN_TYPES else None


@cache
def meanings() -> Mapping[str, str]:
    """What each type means, by its name."""
    return {kind.value: known.meaning for kind, known in known_types().items()}


@cache
def types_by_role() -> Mapping[str, frozenset[str]]:
    """Which types of attack show whether a voice has a role."""
    roles = dict.fromkeys(role for known in known_types().values() for role in known.roles)
    return {
        role: frozenset(kind.value for kind, known in known_types().items() if role in known.roles)
        for role in roles
    }


STRONG, LEANING = 2, 1
FEWEST_POINTS = 2
LONGEST_DESCRIPTION = 2_000
"""How much of a description is searched for keywords."""


@cache
def _keywords() -> Mapping[PatternType, Sequence[tuple[int, re.Pattern[str]]]]:
    """For each type the words that speak for it, as patterns with their points."""
    return {
        kind: ((STRONG, _any_of(known.keywords.strong)), (LEANING, _any_of(known.keywords.leaning)))
        for kind, known in known_types().items()
    }


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    bodies = (re.escape(word).replace(r"\*", r"\w*").replace(r"\ ", r"\s+") for word in words)
    return re.compile(rf"(?<!\w)(?:{'|'.join(bodies)})(?!\w)")


def canonical_type(name: str | None) -> str | None:
    """The type a name stands for, however it is spelled: one of the eight or `other`. Else None."""
    squeezed = re.sub(r"[^a-z]+", "_", (name or "").lower()).strip("_")
    return squeezed if squeezed in PATTERN_TYPES or squeezed == OTHER_TYPE else None


def classify_pattern_heuristic(pattern_str: str) -> str:
    """The pattern type whose words the description uses most, or `unclassified`."""
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
    answer = decode(text[start:end]) or repair(text[start:end]) or {}
    types: dict[str, str] = {}
    for number, description in enumerate(descriptions, start=1):
        name = answer.get(str(number))
        if isinstance(name, str):
            kind = UNCLASSIFIED if name.strip().lower() in UNTYPED else canonical_type(name)
            if kind:
                types[description] = kind
    return types
