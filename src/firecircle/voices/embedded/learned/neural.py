"""The neural lens: what sentence models hear in each stretch of a prompt, and in its relation to the rest.

Like the n-grams it knows no rule; unlike them it knows words it never met in an attack by their meaning, and
it compares layers: words from below that speak like the operator's text, or break with what surrounds them,
count. Nothing of it is imported before the voice is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from firecircle.errors import ConfigError
from firecircle.languages import READ_ROUGHLY
from firecircle.names import has_neural_weights
from firecircle.voices.embedded.language.prompt_reading import PromptReading
from firecircle.voices.embedded.lenses.findings import WEAK, Finding, Reread, does, in_its_prompt

if TYPE_CHECKING:
    from firecircle.voices.embedded.learned.head import Head

BLIND, ROUGH = 0.3, 0.6
"""What it cannot see of English, and of the languages that one of its two models reads. Set by hand."""


class NeuralReader:
    """Two sentence models, one tuned and one multilingual, over the windows that stand out."""

    name = "neural"
    looks_at = "what each passage means and how it relates to the other layers"
    reserve, confirms_from, type_from = 0.3, 0.6, 0.35

    def __init__(self, head: Head | None = None) -> None:
        if not has_neural_weights():
            raise ConfigError(
                "models",
                "the weights of embedded:neural are missing",
                "run `firecircle local fetch neural`, or leave embedded:neural out",
            )
        from firecircle.voices.embedded.learned.head import Judge, shipped_judge

        self._read = lru_cache(maxsize=8)((Judge(head) if head else shipped_judge()).open)

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """The windows that sound most like manipulation, each shown by its worst sentence."""
        read = self._read(reading.prompt)
        findings = []
        for judged in read.judged():
            shown = read.shown_by(judged.window) if judged.strength >= WEAK else judged.window
            kind = judged.kind
            strength = in_its_prompt(reading, kind, judged.strength, judged.window)
            findings.append(Finding(kind, strength, *shown, note_for(kind)))
        return tuple(findings)

    def weigh(self, findings: Iterable[Finding]) -> float:
        """The worst window counts: windows of one prompt are anything but independent."""
        return max((finding.strength for finding in findings), default=0.0)

    def reread(self, reading: PromptReading, layer: str, start: int, end: int) -> Reread:
        """The strongest of the windows that hold these words."""
        judged = self._read(reading.prompt).judged(layer, start, end)
        worst = max(judged, key=lambda each: each.strength, default=None)
        if worst is None:
            return Reread(0.0, {})
        strength = in_its_prompt(reading, worst.kind, worst.strength, worst.window)
        return Reread(strength, worst.types)

    def blindness(self, reading: PromptReading) -> float:
        """It was trained on English; other languages it reads with one of its two models."""
        return ROUGH if reading.unread else BLIND

    def unread(self, reading: PromptReading) -> tuple[str, ...]:
        """Whatever neither model reads."""
        return tuple(language for language in reading.unread if language not in READ_ROUGHLY)


def note_for(pattern: str) -> str:
    """Why words stand out, as this method can say it."""
    return f"These words are close in meaning to texts that {does(pattern)}"


def nearness_in_meaning(question: str, texts: Sequence[str]) -> list[float]:
    """For each text how near it is to the question, as the sentence model hears them; 1 is the same."""
    from firecircle.voices.embedded.learned.encoder import WIDTH, encoder

    first, *others = encoder().read([question, *texts])[:, -WIDTH:]
    return [float(first @ other) for other in others]
