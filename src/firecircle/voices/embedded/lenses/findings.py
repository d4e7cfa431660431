"""What a reader found in a prompt, and what a lens and a reader are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from firecircle.circle.pattern_types import known_type
from firecircle.voices.embedded.language.claims import claims
from firecircle.voices.embedded.language.prompt_reading import PromptReading, overlap, words_of

STRONG = 0.6
"""From here on a finding stands by itself."""
WEAK = 0.15
"""Below this a finding is not worth mentioning."""
Place: TypeAlias = tuple[str, int, int]
"""Layer, start and end."""
PASTS = ("temporal_inconsistency", "fabricated_progression")
"""Types that claim something about what went before."""
ON_RECORD, OFF_FOR_TRUE, ON_FOR_INVENTED = 0.3, 2.0, 0.5
"""The share of a claim's words that the known turns contain if it is true, and the log-odds that a true claim
loses and an invented one gains."""
FEWEST_COMPARED = 3
"""Words of a sentence without a claim that are compared with the turns."""
OFF_FOR_LENGTH, WINDOW, MOST_OFF = 0.5, 320, 1.5
"""Log-odds that a learned reader's window loses for each e-fold of such windows (of characters) in its layer,
and at most: padding must not hide an attack."""
OFF_FOR_FEW_WORDS = 3.0
_FEW_WORDS = re.compile(r"\W{0,9}[A-Za-z]{1,20}(?:\W{1,9}[A-Za-z]{1,20})?\W{0,9}")
SUREST = 0.99
"""Whatever words say, they may be meant otherwise."""
FEWEST_SHOWN = 4
"""Words that a learned reader shows at least, where a sentence has so many."""
_WORD = re.compile(r"[A-Za-z]\w+|\bI\b|\ba\b")


class Finding(NamedTuple):
    """One sign of manipulation: which pattern, where in the prompt, how strong, and why in plain words."""

    pattern: str | None
    """The type that the reader itself sees in these words; None when it only knows that there is one."""
    strength: float
    layer: str
    start: int
    end: int
    note: str

    def touches(self, layer: str, start: int, end: int) -> bool:
        """Whether it overlaps a place."""
        return self.layer == layer and self.start < end and start < self.end


class Reread(NamedTuple):
    """What a reader makes of words that a peer quoted, reading them with its own method."""

    strength: float
    types: Mapping[str, float]
    """How probable each pattern type is in these words, or for a rule how strongly it saw it."""


class Lens(Protocol):
    """One set of rules. `embedded:rules` looks through all of them; a plugin brings one of its own."""

    name: str
    looks_at: str
    """In plain words, for the reasoning."""

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Everything this lens sees, weak or strong."""
        ...


class Reader(Protocol):
    """A complete reader: it finds manipulation of any type with one method of its own."""

    name: str
    looks_at: str
    """In plain words, for the reasoning."""
    reserve: float
    """Log-odds that this reader holds back while no peer suspects the same words."""
    confirms_from: float
    """The strength from which on this reader confirms a peer's pattern: nine of ten harmless texts stay
    below."""
    type_from: float
    """How probable the peer's type must be to this reader."""

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Everything this reader sees, weak or strong."""
        ...

    def weigh(self, findings: Iterable[Finding]) -> float:
        """How probable manipulation is, given these findings and no other."""
        ...

    def reread(self, reading: PromptReading, layer: str, start: int, end: int) -> Reread:
        """What this reader makes of these very words."""
        ...

    def blindness(self, reading: PromptReading) -> float:
        """How much of what this reader needs to see is missing, from 0 to 1."""
        ...

    def unread(self, reading: PromptReading) -> tuple[str, ...]:
        """The languages of the prompt that this reader does not read."""
        ...


def log_odds(chance: float) -> float:
    """The logarithm of the odds, within bounds."""
    bounded = min(max(chance, 1e-4), 1 - 1e-4)
    return math.log(bounded / (1 - bounded))


def probability(odds: float) -> float:
    """The probability behind log-odds; never quite sure."""
    return min(SUREST, 1 / (1 + math.exp(-max(-30.0, odds))))


def in_its_prompt(reading: PromptReading, pattern: str, strength: float, place: Place) -> float:
    """The strength of a learned reader's window in its prompt: one of many, and next to the known turns.

    One or two plain words ("hello", "unfiltered") are too few to manipulate: no development attack is one.
    The loudest of many windows is loud by chance, so a long text takes off what it adds. And the reader knows
    how a claim of a past sounds, not whether it is true. Compared are the sentences of the window that claim
    something, all of them, else the one that is nearest to the turns. Of a claim that is on record most of
    its words stand in the turns; on the development prompts at least `ON_RECORD` of them, and of invented
    ones at most a quarter.
    """
    text = reading.text(place[0])
    odds = log_odds(strength) - min(MOST_OFF, OFF_FOR_LENGTH * math.log1p(len(text) / WINDOW))
    if _FEW_WORDS.fullmatch(text):
        odds -= OFF_FOR_FEW_WORDS
    turns = reading.prompt.turns
    if pattern in PASTS and turns is not None:
        said = [(words_of(read.sentence), any(claims(read.sentence))) for read in reading.at(*place)]
        claimed = [overlap(words, reading.said_before) for words, claims_it in said if words and claims_it]
        others = [overlap(words, reading.said_before) for words, _ in said if len(words) >= FEWEST_COMPARED]
        if turns and (min(claimed) if claimed else max(others, default=0.0)) >= ON_RECORD:
            odds -= OFF_FOR_TRUE
        elif place[0] == "user":
            odds += ON_FOR_INVENTED
    return probability(odds)


def does(pattern: str) -> str:
    """What words of this type do, as the end of a sentence that begins with them."""
    known = known_type(pattern)
    return known.does if known else f"show {pattern.replace('_', ' ')}"


def says_something(words: str) -> bool:
    """Whether words are enough to be shown by themselves: "You will:" and "```yaml" are not."""
    return not words.isascii() or len(_WORD.findall(words)) >= FEWEST_SHOWN


def strongest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings by strength, then by place."""
    return tuple(sorted(findings, key=lambda f: (-f.strength, f.layer, f.start, f.pattern or "")))
