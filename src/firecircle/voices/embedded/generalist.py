"""All lenses in one voice: each looks once, and one falsehood is made of what they say together.

A circle takes the highest falsehood of its voices. Where one voice judges alone, the lenses' words are
weighed instead: several weak signs add up, and a lens that often errs counts less. The weights were learned
on labelled prompts (`training.generalist`): falsehood is a probability where half of the prompts are attacks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from firecircle.circle.voice import Turn
from firecircle.voices.embedded.language.prompt_reading import PromptReading
from firecircle.voices.embedded.lenses.findings import Finding, Lens, falsehood, strongest_first
from firecircle.voices.embedded.voice import AnalyserVoice, findings_of, unread_by

WEIGHTS_FILE = "generalist.json"
SUREST = 0.99
"""No lens is surer than this, so that none decides alone for ever."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much the log-odds of each lens count."""

    lenses: Mapping[str, float]
    offset: float

    def score(self, by_lens: Mapping[str, float]) -> float:
        """The log-odds from the falsehood of each lens."""
        return self.offset + sum(weight * log_odds(by_lens[name]) for name, weight in self.lenses.items())

    def falsehood(self, by_lens: Mapping[str, float]) -> float:
        """One probability from the falsehood of each lens."""
        return round(1 / (1 + math.exp(-max(-30.0, min(30.0, self.score(by_lens))))), 4)


def log_odds(probability: float) -> float:
    """The logarithm of the odds, within bounds."""
    bounded = min(max(probability, 1 - SUREST), SUREST)
    return math.log(bounded / (1 - bounded))


@cache
def shipped_weights() -> dict[frozenset[str], Weights]:
    """The weights that come with the package, by the lenses they are for: with the neural one, or without."""
    text = resources.files(__package__).joinpath("learned", WEIGHTS_FILE).read_text(encoding="utf-8")
    return {frozenset(each["lenses"]): Weights(each["lenses"], each["offset"]) for each in json.loads(text)}


class Generalist(AnalyserVoice):
    """Reads with every lens at hand."""

    looks_at = "all layers with every lens at once"

    def __init__(self, lenses: Sequence[Lens], weights: Weights | None = None) -> None:
        self._lenses = tuple(lenses)
        self._weights = weights or shipped_weights()[frozenset(lens.name for lens in lenses)]

    def judge(self, turn: Turn, reading: PromptReading) -> tuple[tuple[Finding, ...], float]:
        """Everything that any lens finds, and one falsehood for all of it."""
        by_lens = {lens.name: findings_of(lens, turn, reading) for lens in self._lenses}
        together = strongest_first(finding for findings in by_lens.values() for finding in findings)
        said = {name: falsehood(findings, from_the_chair=turn.is_chair) for name, findings in by_lens.items()}
        return together, self._weights.falsehood(said)

    def blindness(self, reading: PromptReading) -> float:
        """What the lens that sees most cannot see; of other languages, the lens that reads them."""
        readers = [lens for lens in self._lenses if reading.unread and not unread_by([lens], reading)]
        return min(lens.blindness(reading) for lens in readers or self._lenses)

    def unread(self, reading: PromptReading) -> tuple[str, ...]:
        """The languages that no lens reads."""
        return unread_by(self._lenses, reading)
