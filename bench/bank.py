"""How well the bank tells one pattern from another: precision and recall on labelled pairs of descriptions.

The threshold was chosen on the tuning half; the held half says what it is worth.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rapidfuzz import fuzz

from firecircle.store.bank.likeness import SAME_MEANING, likeness

PAIRS = Path(__file__).parent / "data" / "bank_pairs.jsonl"
WANTED_PRECISION = 0.95


@dataclass(frozen=True, slots=True)
class Pair:
    """Two descriptions of one pattern type, and whether they tell of the same manipulation."""

    half: str
    kind: str
    one: str
    other: str
    same: bool


Measure = Callable[[Pair], float]


@dataclass(frozen=True, slots=True)
class Quality:
    """How a threshold does on some pairs."""

    merged: int
    rightly: int
    same: int

    @property
    def precision(self) -> float:
        """The share of merged pairs that are the same."""
        return self.rightly / self.merged if self.merged else 1.0

    @property
    def recall(self) -> float:
        """The share of same pairs that are merged."""
        return self.rightly / self.same


def pairs() -> list[Pair]:
    """Every labelled pair."""
    told = map(json.loads, PAIRS.read_text("utf-8").splitlines())
    return [Pair(one["half"], one["type"], one["a"], one["b"], one["same"]) for one in told]


def quality(scored: Sequence[tuple[float, bool]], threshold: float) -> Quality:
    """What merging from this threshold on does."""
    merged = [same for score, same in scored if score >= threshold]
    return Quality(len(merged), sum(merged), sum(same for _, same in scored))


def best_threshold(scored: Sequence[tuple[float, bool]]) -> float:
    """The lowest threshold, in steps of 0.01, whose precision and that of all above is good enough."""
    found = 1.0
    for step in range(100, -1, -1):
        if quality(scored, step / 100).precision < WANTED_PRECISION:
            break
        found = step / 100
    return found


def area(scored: Sequence[tuple[float, bool]]) -> float:
    """How often a pair that is the same scores higher than one that is not."""
    same = [score for score, is_same in scored if is_same]
    apart = [score for score, is_same in scored if not is_same]
    wins = sum((one > other) + (one == other) / 2 for one in same for other in apart)
    return wins / (len(same) * len(apart))


def main() -> None:
    """Print the figures of the bank's own measure, and of others beside it."""
    labelled = pairs()
    measures: dict[str, Measure] = {
        "likeness": lambda pair: likeness(pair.one, pair.other, pair.kind),
        "token_set": lambda pair: fuzz.token_set_ratio(pair.one, pair.other) / 100,
    }
    if (sentences := _sentence_embeddings()) is not None:
        measures["MiniLM"] = sentences
    print(f"{len(labelled)} pairs; threshold of the bank: {SAME_MEANING}")
    titles = f"{'measure':10} {'half':7} {'at':>5} {'merged':>7} {'right':>6}"
    print(f"{titles} {'precision':>10} {'recall':>7} {'AUC':>6}")
    for name, measure in measures.items():
        scores = {
            half: [(measure(pair), pair.same) for pair in labelled if pair.half == half]
            for half in ("tuning", "held")
        }
        threshold = SAME_MEANING if name == "likeness" else best_threshold(scores["tuning"])
        for half, scored in scores.items():
            told = quality(scored, threshold)
            print(
                f"{name:10} {half:7} {threshold:5.2f} {told.merged:7} {told.rightly:6}"
                f" {told.precision:10.1%} {told.recall:7.1%} {area(scored):6.3f}"
            )


def _sentence_embeddings() -> Measure | None:
    """Cosine of sentence embeddings where the optional weights are at hand, only to compare with."""
    from firecircle.voices.embedded.learned.neural import is_available

    if not is_available():
        return None
    from firecircle.voices.embedded.learned.encoder import WIDTH, encoder

    def cosine(pair: Pair) -> float:
        one, other = encoder().read([pair.one, pair.other])[:, -WIDTH:]
        return float(one @ other)

    return cosine


if __name__ == "__main__":
    main()
