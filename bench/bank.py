"""How well the bank tells one pattern from another: precision and recall on labelled pairs of descriptions.

The threshold was chosen on the tuning half; the held half says what it is worth.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rapidfuzz import fuzz

from bench.figures import shown
from firecircle.lab.statistics.estimate import Scored, numbers
from firecircle.lab.statistics.performance import auc, rates
from firecircle.store.bank.search import SAME_MEANING, likeness

PAIRS = Path(__file__).parent / "data" / "bank_pairs.jsonl"
WANTED_PRECISION = 0.95


@dataclass(frozen=True, slots=True)
class Pair:
    """Two descriptions of one pattern type, and whether they describe the same manipulation."""

    half: str
    source: str
    kind: str
    first: str
    second: str
    same: bool


Measure = Callable[[Pair], float]


def pairs() -> list[Pair]:
    """Every labelled pair."""
    rows = map(json.loads, PAIRS.read_text("utf-8").splitlines())
    return [Pair(row["half"], row["source"], row["type"], row["a"], row["b"], row["same"]) for row in rows]


def scores_of(half: str, measure: Measure, labelled: Sequence[Pair]) -> Scored:
    """The scores of one half; pairs that are the same stand where the lab has attacks."""
    of_half = [(measure(pair), pair.same) for pair in labelled if pair.half == half]
    return Scored(
        attack=numbers([score for score, same in of_half if same]),
        benign=numbers([score for score, same in of_half if not same]),
    )


def best_threshold(scores: Scored) -> float:
    """The lowest threshold, in steps of 0.01, whose precision and that of all above is good enough."""
    lowest = 1.0
    for step in range(100, -1, -1):
        precision = rates(scores, step / 100).precision.value
        if precision is not None and precision < WANTED_PRECISION:
            break
        lowest = step / 100
    return lowest


def bank_likeness(pair: Pair) -> float:
    """What the bank itself goes by."""
    return likeness(pair.first, pair.second, pair.kind)


def main() -> None:
    """Print the figures of the bank's own measure, and of others beside it."""
    labelled = pairs()
    measures: dict[str, Measure] = {
        "likeness": bank_likeness,
        "token_set": lambda pair: fuzz.token_set_ratio(pair.first, pair.second) / 100,
    }
    if (sentences := _sentence_embeddings()) is not None:
        measures["MiniLM"] = sentences
    print(f"{len(labelled)} pairs; threshold of the bank: {SAME_MEANING}")
    titles = f"{'measure':10} {'half':7} {'at':>5} {'merged':>7} {'right':>6}"
    print(f"{titles}  {'precision':20}{'recall':20}AUC")
    for name, measure in measures.items():
        scores = {half: scores_of(half, measure, labelled) for half in ("tuning", "held")}
        threshold = SAME_MEANING if name == "likeness" else best_threshold(scores["tuning"])
        for half, scored in scores.items():
            merging = rates(scored, threshold)
            print(
                f"{name:10} {half:7} {threshold:5.2f} {merging.precision.n:7} {merging.found:6}"
                f"  {shown(merging.precision):20}{shown(merging.recall):20}{shown(auc(scored))}"
            )


def _sentence_embeddings() -> Measure | None:
    """Cosine of sentence embeddings where the optional weights are at hand, only to compare with."""
    from firecircle.names import has_neural_weights

    if not has_neural_weights():
        return None
    from firecircle.voices.embedded.learned.encoder import WIDTH, encoder

    def cosine(pair: Pair) -> float:
        first, second = encoder().read([pair.first, pair.second])[:, -WIDTH:]
        return float(first @ second)

    return cosine


if __name__ == "__main__":
    main()
