"""All lenses in one voice: each looks once, and one falsehood is made of what they say together.

A circle takes the highest falsehood of its voices. Where one voice judges alone it is nearly the same: a soft
maximum, in which the strongest lens decides and others that say as much add a little. Scale and offset were
learned on labelled prompts (`training.generalist`): falsehood is a probability where half are attacks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from firecircle.circle.voice import Turn
from firecircle.voices.embedded.language.prompt_reading import PromptReading
from firecircle.voices.embedded.lenses.findings import Finding, Lens, falsehood, strongest_first
from firecircle.voices.embedded.voice import AnalyserVoice, findings_of, unread_by

FUSION_FILE = "generalist.json"
SUREST = 0.99
"""No lens is surer than this, so that none decides alone for ever."""


SHARPNESS = 2.0
"""How nearly the soft maximum is the maximum."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """How what several lenses say becomes one probability."""

    scale: float
    offset: float

    def falsehood(self, by_lens: Mapping[str, float]) -> float:
        """One probability from the falsehood of each lens."""
        score = self.scale * soft_maximum(by_lens.values()) + self.offset
        return round(1 / (1 + math.exp(-max(-30.0, min(30.0, score)))), 4)


def soft_maximum(falsehoods: Iterable[float]) -> float:
    """The highest log-odds and a little more: others add what they have in common with it."""
    return math.log(sum(math.exp(SHARPNESS * log_odds(each)) for each in falsehoods)) / SHARPNESS


def log_odds(probability: float) -> float:
    """The logarithm of the odds, within bounds."""
    bounded = min(max(probability, 1 - SUREST), SUREST)
    return math.log(bounded / (1 - bounded))


@cache
def shipped_fusions() -> dict[frozenset[str], Fusion]:
    """Those that come with the package, by the lenses they are for: with the neural one, or without."""
    text = resources.files(__package__).joinpath("learned", FUSION_FILE).read_text(encoding="utf-8")
    return {frozenset(each["lenses"]): Fusion(each["scale"], each["offset"]) for each in json.loads(text)}


class Generalist(AnalyserVoice):
    """Reads with every lens at hand."""

    looks_at = "all layers with every lens at once"

    def __init__(self, lenses: Sequence[Lens]) -> None:
        self._lenses = tuple(lenses)
        self._fusion = shipped_fusions()[frozenset(lens.name for lens in lenses)]

    def judge(self, turn: Turn, reading: PromptReading) -> tuple[tuple[Finding, ...], float]:
        """Everything that any lens finds, and one falsehood for all of it."""
        by_lens = {lens.name: findings_of(lens, turn, reading) for lens in self._lenses}
        together = strongest_first(finding for findings in by_lens.values() for finding in findings)
        said = {name: falsehood(findings, from_the_chair=turn.is_chair) for name, findings in by_lens.items()}
        return together, self._fusion.falsehood(said)

    def blindness(self, reading: PromptReading) -> float:
        """What the lens that sees most cannot see; of other languages, the lens that reads them."""
        readers = [lens for lens in self._lenses if reading.unread and not unread_by([lens], reading)]
        return min(lens.blindness(reading) for lens in readers or self._lenses)

    def unread(self, reading: PromptReading) -> tuple[str, ...]:
        """The languages that no lens reads."""
        return unread_by(self._lenses, reading)
