"""What a reader found in a prompt, and what a lens and a reader are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from firecircle.circle.pattern_types import known_type
from firecircle.voices.embedded.language.prompt_reading import PromptReading

STRONG = 0.6
"""From here on a finding stands by itself."""
WEAK = 0.15
"""Below this a finding is not worth mentioning."""


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


def does(pattern: str) -> str:
    """What words of this type do, as the end of a sentence that begins with them."""
    known = known_type(pattern)
    return known.does if known else f"show {pattern.replace('_', ' ')}"


def strongest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings by strength, then by place."""
    return tuple(sorted(findings, key=lambda f: (-f.strength, f.layer, f.start, f.pattern or "")))
