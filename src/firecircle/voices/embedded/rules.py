"""The rule reader: every lens and every decoder, fused into one voice that can name any pattern type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firecircle.voices.embedded.dialogue import RESERVE
from firecircle.voices.embedded.language.prompt_reading import PromptReading
from firecircle.voices.embedded.lenses.findings import Finding, Lens, Reread, log_odds, probability

QUIET = 0.02
"""The probability of manipulation where no rule found anything."""
FADING = (1.0, 0.45, 0.25, 0.15)
"""Findings are not independent: each further one counts less."""
SLOPE = 2.5
OFFSET_OF_A_USER, OFFSET = 0.74, -0.02
"""From the strengths of the lenses, which were set by hand, to log-odds. The words of a user alarm from a
strength of 0.6 on, those of a document, full of orders for people and agents, from 0.67 on (decision 099)."""
BLIND, BLIND_WITHOUT_TURNS, BLIND_WITH_ONE_LAYER = 0.1, 0.2, 0.15
"""What rules cannot see of any prompt, of one whose turns are unknown, and of one without relations."""


class RuleReader:
    """Looks through lenses: all of the package's for `embedded:rules`, one for a plugin's."""

    confirms_from, type_from = 0.4, 0.4

    def __init__(
        self, name: str, lenses: Sequence[Lens], looks_at: str = "", *, reserve: float = RESERVE
    ) -> None:
        self.name = name
        self.reserve = reserve
        self.lenses = tuple(lenses)
        self.looks_at = looks_at or "; ".join(lens.looks_at for lens in lenses)

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Everything that any lens sees."""
        return tuple(
            finding._replace(strength=calibrated(finding.strength, finding.layer))
            for lens in self.lenses
            for finding in lens.find(reading)
        )

    def weigh(self, findings: Iterable[Finding]) -> float:
        """The best counts fully, further ones less and less."""
        doubt = 1.0 - QUIET
        ranked = sorted((finding.strength for finding in findings), reverse=True)
        for strength, share in zip(ranked, FADING, strict=False):
            doubt *= 1.0 - strength * share
        return 1.0 - doubt

    def reread(self, reading: PromptReading, layer: str, start: int, end: int) -> Reread:
        """The findings in these words; rules read a text once, so there are no others."""
        there = [finding for finding in reading.found_by(self) if finding.touches(layer, start, end)]
        types: dict[str, float] = {}
        for finding in there:
            if finding.pattern:
                types[finding.pattern] = max(types.get(finding.pattern, 0.0), finding.strength)
        return Reread(max((finding.strength for finding in there), default=0.0), types)

    def blindness(self, reading: PromptReading) -> float:
        """Claims need turns to be checked against, and relations need layers."""
        missing = BLIND_WITHOUT_TURNS if reading.prompt.turns is None else 0.0
        return BLIND + missing + (BLIND_WITH_ONE_LAYER if len(reading.prompt.layers) < 2 else 0.0)

    def unread(self, reading: PromptReading) -> tuple[str, ...]:
        """Rules read English."""
        return reading.unread


def calibrated(strength: float, layer: str) -> float:
    """The probability behind a strength that was set by hand."""
    return probability(SLOPE * log_odds(strength) + (OFFSET_OF_A_USER if layer == "user" else OFFSET))
