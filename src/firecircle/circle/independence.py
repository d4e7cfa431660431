"""How many independent voices a circle amounts to, by the errors that its voices have shared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import sqrt

from firecircle.names import Label
from firecircle.shapes import Shape, Text
from firecircle.thresholds import reaches

FEWEST_ITEMS = 30
"""With fewer labelled prompts the effective number could be anything from 1 to all voices."""


class SharedErrors(Shape):
    """How often two voices were wrong together."""

    voices: tuple[Text, Text]
    phi: float
    """Correlation of their errors."""


class MeasuredErrors(Shape):
    """How voices' errors correlate on labelled prompts that each judged independently."""

    voices: tuple[Text, ...]
    n: int
    """Labelled prompts that at least two of them judged."""
    pairs: tuple[SharedErrors, ...]
    """Pairs in which both voices were sometimes wrong and sometimes right."""

    def independence(self, voices: Sequence[str]) -> Independence | None:
        """How many independent voices these are; None if the prompts do not show it."""
        seated = set(voices)
        known = [pair.phi for pair in self.pairs if seated.issuperset(pair.voices)]
        if self.n < FEWEST_ITEMS or not known or not seated.issubset(self.voices):
            return None
        return Independence(
            voices=len(seated), effective=effective_voices(len(seated), sum(known) / len(known)), n=self.n
        )


class Independence(Shape):
    """How many independent voices would average out errors as well as these."""

    voices: int
    effective: float
    n: int

    @property
    def sentence(self) -> str:
        """Such as `3 voices ≈ 2.1 independent (n = 512)`."""
        return f"{self.voices} voices ≈ {self.effective:.1f} independent (n = {self.n:,})"


def effective_voices(n: int, mean_phi: float) -> float:
    """Kish's design effect as a number of voices. Errors that offset each other count as independent."""
    return n / (1 + (n - 1) * max(mean_phi, 0.0))


def measured_errors(
    said: Iterable[Mapping[str, float]], labels: Iterable[Label], thresholds: Iterable[float]
) -> MeasuredErrors:
    """`said` has, for each labelled prompt, each voice's falsehood in round 1."""
    voices: dict[str, None] = {}
    together: dict[tuple[str, str], list[int]] = {}
    n = 0
    for by_voice, label, threshold in zip(said, labels, thresholds, strict=True):
        wrong = {name: reaches(f, threshold) != (label == "attack") for name, f in sorted(by_voice.items())}
        voices.update(dict.fromkeys(wrong))
        n += len(wrong) > 1
        for pair in combinations(wrong, 2):
            counts = together.setdefault(pair, [0, 0, 0, 0])
            counts[2 * wrong[pair[0]] + wrong[pair[1]]] += 1
    known = ((pair, _phi(*counts)) for pair, counts in sorted(together.items()))
    return MeasuredErrors(
        voices=tuple(voices),
        n=n,
        pairs=tuple(SharedErrors(voices=pair, phi=phi) for pair, phi in known if phi is not None),
    )


def _phi(neither: int, second: int, first: int, both: int) -> float | None:
    """The correlation of a two-by-two table; None if one of the two never or always erred."""
    spread = (first + both) * (neither + second) * (second + both) * (neither + first)
    return (both * neither - first * second) / sqrt(spread) if spread else None
