"""What a lens found, and how findings add up to one falsehood."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from firecircle.voices.embedded.language.prompt_reading import PromptReading

STRONG = 0.6
"""From here on a finding stands by itself."""
WEAK = 0.15
"""Below this a finding is not worth mentioning."""
FAINT = 0.05
"""Below this it is no observation either: it moves falsehood, so that prompts keep their order, and nothing
else."""
QUIET = 0.06
"""The falsehood of a lens that found nothing."""
_FADING = (1.0, 0.45, 0.25, 0.15)
"""Findings of one lens are not independent: each further one counts less."""
_FADING_FROM_THE_CHAIR = (1.0, 0.7, 0.3, 0.2)
"""The empty chair looks longer at what comes second."""


class Finding(NamedTuple):
    """One sign of manipulation: which pattern, where in the prompt, how strong, and why in plain words."""

    pattern: str | None
    """The type that the lens itself sees in these words; None when it only knows that something is there."""
    strength: float
    layer: str
    start: int
    end: int
    note: str
    echo: bool = False
    """Made only because a peer quoted these words: it moves falsehood, and is no observation of its own."""

    def touches(self, layer: str, start: int, end: int) -> bool:
        """Whether it overlaps a place."""
        return self.layer == layer and self.start < end and start < self.end


class Lens(Protocol):
    """One way of looking. A new lens writes these three and is declared in the catalog."""

    name: str
    looks_at: str
    """In plain words, for the reasoning."""

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Everything this lens sees, weak or strong."""
        ...

    def support(self, reading: PromptReading, layer: str, start: int, end: int) -> float:
        """How strongly these very words speak for manipulation to this lens, beyond what it found itself."""
        ...

    def blindness(self, reading: PromptReading) -> float:
        """How much of what this lens needs to see is missing, from 0 to 1."""
        ...


def falsehood(findings: Iterable[Finding], *, from_the_chair: bool = False) -> float:
    """One number for all findings of a lens: the best counts fully, further ones less and less."""
    findings = list(findings)
    if not findings:
        return QUIET
    doubt = 1.0 - QUIET
    ranked = sorted((finding.strength for finding in findings if not finding.echo), reverse=True)
    for strength, share in zip(ranked, _FADING_FROM_THE_CHAIR if from_the_chair else _FADING, strict=False):
        doubt *= 1.0 - strength * share
    loudest_echo = max((finding.strength for finding in findings if finding.echo), default=0.0)
    return round(max(1.0 - doubt, loudest_echo), 4)


def strongest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings by strength, then by place."""
    return tuple(sorted(findings, key=lambda f: (-f.strength, f.layer, f.start, f.pattern or "")))
