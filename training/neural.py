"""Train the neural voice: `python -m training.neural` writes voices/embedded/learned/neural.npz.

Needs the extras `neural` and `lab` and ../shared/data/dev.jsonl; the texts written for this project
(training/data/authored_*.jsonl) are always trained on and never scored. First every source of the development
data is left out in turn: its prompts are scored by a head that never saw a text of it; all figures and the
calibration come from those scores. The same data gives the same numbers, in a minute or two.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from firecircle.lab.datasets import Record
from firecircle.lab.statistics import performance
from firecircle.lab.statistics.cross_validation import strictest_needed
from firecircle.lab.statistics.estimate import numbers
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.learned.encoder import Array, Encoder, Places, encoder
from firecircle.voices.embedded.learned.head import (
    CROWD,
    FINGERPRINT,
    MOST_READ,
    TYPES,
    WEIGHTS_FILE,
    Head,
    pattern_of,
    skim,
    standard,
    strength,
    windows,
    worst_first,
)
from firecircle.voices.embedded.lenses.findings import Finding, falsehood
from training import VOICES
from training.labelled import ALARM, AUTHORED, authored, development, is_attack, is_derived

Flags = NDArray[np.bool_]

AXES = 256
"""Principal axes kept of the vectors."""
WHITENING = 0.5
"""How far the axes are made equal: 0 leaves them as they are, 1 makes them all alike."""
PULL_SKIM, PULL_READ, PULL_TYPES = 0.1, 0.3, 1.0
"""How strongly weights are pulled towards zero."""
RELATION_SCALE = 2.0
"""Relations are pulled less than the many numbers of a vector."""
LOOKS = 2
"""How often the worst window of each attack is chosen anew."""
FALSE_ALARMS, EDGE = 0.01, 0.54
"""The share of benign prompts of unseen sources that may reach this falsehood. It lies below the alarm: the
circle takes the maximum of its voices, and what this one suspects the dialogue can confirm."""
TYPE_OF_FAMILY = {
    "fabricated_history": "temporal_inconsistency",
    "cross_layer_fabrication": "cross_layer_fabrication",
    "indirect_injection": "cross_layer_fabrication",
    "polite_extraction": "polite_extraction",
    "system_prompt_extraction": "polite_extraction",
    "educational_escalation": "educational_escalation",
    "instruction_override": "role_confusion",
    "jailbreak_persona": "role_confusion",
    "role_confusion": "role_confusion",
    "false_authority": "false_authority",
}


@dataclass(frozen=True, slots=True)
class Scored:
    """A record with the score of the worst window of each layer, by a head that never saw its source."""

    record: Record
    layers: dict[str, float]
    pattern: str

    @property
    def attack(self) -> bool:
        """Whether the record is an attack."""
        return is_attack(self.record)

    @property
    def score(self) -> float:
        """The score of the worst window."""
        return max(self.layers.values(), default=-30.0)

    def falsehood(self, head: Head) -> float:
        """What the voice would say in round 1."""
        return falsehood(Finding("", strength(score, head), "", 0, 0, "") for score in self.layers.values())


class Remembering:
    """The sentence model, remembering every text: each is met again in every fold."""

    def __init__(self, model: Encoder) -> None:
        self._model = model
        self._skimmed: dict[str, Array] = {}
        self._read: dict[str, Array] = {}

    def skim(self, texts: Sequence[str]) -> Array:
        """As `Encoder.skim`."""
        new = [text for text in texts if text not in self._skimmed]
        self._skimmed.update(zip(new, self._model.skim(new), strict=True))
        return np.stack([self._skimmed[text] for text in texts]) if texts else self._model.skim(())

    def read(self, texts: Sequence[str]) -> Array:
        """As `Encoder.read`."""
        new = sorted({text for text in texts if text not in self._read}, key=len)
        for start in range(0, len(new), 64):
            part = new[start : start + 64]
            self._read.update(zip(part, self._model.read(part), strict=True))
        return np.stack([self._read[text] for text in texts])


def all_records() -> list[Record]:
    """The development prompts and the texts written for this project."""
    return [*development(), *authored()]


def expected_pattern(record: Record) -> str | None:
    """The pattern that the family of an attack calls for, where its wording can show it."""
    return TYPE_OF_FAMILY.get(record.family or "")


@dataclass(frozen=True, slots=True)
class Axes:
    """A linear map to principal axes, and back for the weights that are found there."""

    mean: Array
    matrix: Array

    @classmethod
    def of(cls, rows: Array, parts: int) -> Axes:
        """The axes of these rows, which consist of equally wide parts made equally important first."""
        mean = rows.mean(0)
        spreads = [part.std(0).mean() for part in np.split(rows, parts, axis=1)]
        scale = np.repeat(1 / np.array(spreads), rows.shape[1] // parts)
        moved = (rows - mean) * scale
        sizes, directions = np.linalg.eigh(moved.T.astype(np.float64) @ moved / len(rows))
        sizes, directions = sizes[::-1][:AXES], directions[:, ::-1][:, :AXES]
        matrix = scale[:, None] * directions / sizes ** (WHITENING / 2)
        matrix = matrix / ((rows - mean) @ matrix).std(0).mean()
        return cls(mean.astype(np.float32), matrix.astype(np.float32))

    def __call__(self, rows: Array) -> Array:
        """The rows along the axes."""
        along: Array = (rows - self.mean).astype(np.float32) @ self.matrix
        return along

    def back(self, weights: Array, offset: float = 0.0) -> tuple[Array, float]:
        """Weights along the axes as weights of a raw vector, with the offset that belongs to them."""
        raw = self.matrix @ weights
        return raw, offset - float(self.mean @ raw)


@dataclass(frozen=True, slots=True)
class Bags:
    """Windows of many prompts, end to end, as rows of numbers; `owner` says whose each is."""

    rows: Array
    owner: Places
    attack: Flags
    weight: Array
    """By prompt: sources count by the square root of their size."""


def fit_worst(bags: Bags, pull: float) -> Array:
    """Weights and offset. Every window of a benign prompt is benign; of an attack only the worst counts."""
    size = np.bincount(bags.owner, minlength=len(bags.attack))[bags.owner]
    attack, base = bags.attack[bags.owner], bags.weight[bags.owner]
    weight = np.where(attack, 1 / size, np.maximum(1 / size, 0.3)) * base
    weights = logistic(bags.rows, attack, weight, pull)
    for _ in range(LOOKS):
        score = bags.rows @ weights[:-1]
        worst = np.full(len(bags.attack), -np.inf, np.float32)
        np.maximum.at(worst, bags.owner, score)
        chosen = np.where(attack, (score >= worst[bags.owner]) * base, weight)
        weights = logistic(bags.rows, attack, chosen, pull, weights)
    return weights


def logistic(rows: Array, attack: Flags, weight: Array, pull: float, start: Array | None = None) -> Array:
    """A logistic regression by Newton's method, both labels weighing the same; the offset comes last."""
    counts = weight > 0
    rows, attack, weight = rows[counts], attack[counts], weight[counts]
    share = (
        np.where(attack, weight / weight[attack].sum(), weight / weight[~attack].sum()).astype(np.float32) / 2
    )
    seen = np.hstack([rows, np.ones((len(rows), 1), np.float32)])
    ridge = np.append(np.full(rows.shape[1], pull, np.float32), np.float32(0))
    weights = np.zeros(seen.shape[1], np.float32) if start is None else start
    for _ in range(12):
        chance = 1 / (1 + np.exp(-np.clip(seen @ weights, -30, 30)))
        slope = seen.T @ (share * (chance - attack)) + ridge * weights
        bend = (seen * (share * np.maximum(chance * (1 - chance), 1e-4))[:, None]).T @ seen + np.diag(ridge)
        step = np.linalg.solve(bend.astype(np.float64), slope.astype(np.float64))
        largest = float(np.abs(step).max())
        weights = (weights - step * min(1.0, 3 / largest)).astype(np.float32)
        if largest < 1e-3:
            break
    return weights


def fit(records: Sequence[Record], model: Remembering) -> Head:
    """The head of these records, not yet calibrated."""
    center = model.skim(sorted({text for record in records for text in _stretches(record.prompt)})).mean(0)
    skimmed = [skim(record.prompt, center, model) for record in records]
    likeness = np.concatenate([each.likeness for each in skimmed])
    usual = np.stack([np.nanmean(likeness, 0), np.nanstd(likeness, 0) / RELATION_SCALE]).astype(np.float32)
    sizes = Counter(record.source for record in records)
    attack = np.array([is_attack(record) for record in records])
    weight = np.array([sizes[record.source] ** -0.5 for record in records], np.float32)

    vectors = np.concatenate([each.vectors for each in skimmed])
    owner = np.repeat(np.arange(len(records)), [len(each.windows) for each in skimmed])
    axes = Axes.of(np.unique(vectors, axis=0), 1)
    rows = np.hstack([axes(vectors), standard(likeness, usual)])
    weights = fit_worst(Bags(rows, owner, attack, weight), PULL_SKIM)
    skim_weights = np.append(axes.back(weights[: -len(usual[0]) - 1])[0], weights[-len(usual[0]) - 1 : -1])
    head = Head(center, usual, skim_weights.astype(np.float32), *(np.zeros(0, np.float32),) * 4)

    places = [worst_first(each, head)[:MOST_READ] for each in skimmed]
    owner = np.repeat(np.arange(len(records)), [len(chosen) for chosen in places])
    texts = [
        each.text(each.windows[at]) for each, chosen in zip(skimmed, places, strict=True) for at in chosen
    ]
    vectors = model.read(texts)
    likeness = np.concatenate([each.likeness[chosen] for each, chosen in zip(skimmed, places, strict=True)])
    axes = Axes.of(np.unique(vectors, axis=0), 2)
    rows = np.hstack([axes(vectors), standard(likeness, usual)])
    weights = fit_worst(Bags(rows, owner, attack, weight), PULL_READ)
    raw, offset = axes.back(weights[: -len(usual[0]) - 1], float(weights[-1]))
    read_weights = np.concatenate([raw, weights[-len(usual[0]) - 1 : -1], [offset]]).astype(np.float32)
    by_user = np.array(
        [
            each.windows[at].layer == "user"
            for each, chosen in zip(skimmed, places, strict=True)
            for at in chosen
        ]
    )
    types = _fit_types(records, axes, vectors[by_user], rows[by_user] @ weights[:-1], owner[by_user])
    return replace(head, read=read_weights, types=types, fingerprint=model.read([FINGERPRINT])[0])


def _stretches(prompt: MultiNeutrosophicPrompt) -> Iterable[str]:
    for layer in ("application", "user"):
        text = str(getattr(prompt, layer))
        yield from (text[window.start : window.end] for window in windows(text, layer))


def _fit_types(records: Sequence[Record], axes: Axes, vectors: Array, score: Array, owner: Places) -> Array:
    """For every pattern a ridge regression that tells the worst windows of its attacks from others."""
    worst: dict[int, int] = {}
    for at, whose in enumerate(owner):
        if expected_pattern(records[whose]) and (whose not in worst or score[at] > score[worst[whose]]):
            worst[int(whose)] = at
    kinds = np.array([TYPES.index(expected_pattern(records[whose]) or "") for whose in worst])
    share = 1 / np.bincount(kinds, minlength=len(TYPES))[kinds] / len(TYPES)
    rows = np.hstack([axes(vectors[list(worst.values())]), np.ones((len(worst), 1), np.float32)])
    ridge = np.diag(np.append(np.full(rows.shape[1] - 1, PULL_TYPES), 0.0))
    targets = np.eye(len(TYPES))[kinds]
    weights = np.linalg.solve((rows * share[:, None]).T @ rows + ridge, (rows * share[:, None]).T @ targets)
    mapped = [axes.back(column[:-1].astype(np.float32), float(column[-1])) for column in weights.T]
    return np.stack([np.append(raw, offset) for raw, offset in mapped]).astype(np.float32)


def score(record: Record, head: Head, model: Remembering) -> Scored:
    """A record's scores by a head."""
    seen = skim(record.prompt, head.center, model)
    places = worst_first(seen, head)[:MOST_READ]
    vectors = model.read([seen.text(seen.windows[at]) for at in places])
    rows = np.hstack([vectors, standard(seen.likeness[places], head.usual)])
    scores = rows @ head.read[:-1] + head.read[-1] - CROWD * math.log(seen.crowd)
    layers: dict[str, float] = {}
    for at, window_score in zip(places, scores, strict=True):
        layer = seen.windows[at].layer
        layers[layer] = max(float(window_score), layers.get(layer, -30.0))
    worst = int(scores.argmax())
    return Scored(record, layers, pattern_of(seen.windows[places[worst]], vectors[worst], head))


def left_out(records: Sequence[Record], model: Remembering) -> tuple[list[Scored], dict[str, Head]]:
    """Every record of the development data scored by a head that never saw its source; and those heads."""
    scored, heads = [], {}
    for source in sorted({record.source for record in records} - {path.stem for path in AUTHORED}):
        heads[source] = fit([record for record in records if record.source != source], model)
        scored += [score(record, heads[source], model) for record in records if record.source == source]
    return scored, heads


def calibrated(head: Head, scored: Sequence[Scored]) -> Head:
    """The head with its calibration: the slope from all scores (Platt), the offset from benign prompts."""
    slope, _ = platt(scored)
    benign = [each for each in scored if not each.attack]
    low, high = -20.0, 20.0
    for _ in range(30):
        middle = (low + high) / 2
        trial = replace(head, calibration=np.array([slope, middle], np.float32))
        alarms = sum(each.falsehood(trial) >= EDGE for each in benign)
        low, high = (middle, high) if alarms <= FALSE_ALARMS * len(benign) else (low, middle)
    return replace(head, calibration=np.array([slope, low], np.float32))


def platt(scored: Sequence[Scored]) -> tuple[float, float]:
    """Slope and offset that turn a score into log-odds where every second prompt is an attack."""
    rows = np.array([[each.score] for each in scored], np.float32)
    attack = np.array([each.attack for each in scored])
    slope, offset = logistic(rows, attack, np.ones(len(scored), np.float32), 0.0)
    return float(slope), float(offset)


def heads_by_source(records: Sequence[Record], model: Remembering) -> dict[str, Head]:
    """For each source a head trained and calibrated without it: what an honest benchmark judges with."""
    scored, heads = left_out(records, model)
    return {source: calibrated(head, _without(scored, source)) for source, head in heads.items()}


def _without(scored: Sequence[Scored], source: str) -> list[Scored]:
    return [each for each in scored if each.record.source != source]


def report(name: str, scored: Sequence[Scored]) -> None:
    """One line of figures."""
    labels, scores = [each.record.label for each in scored], [each.score for each in scored]
    figures = performance(labels, scores, ALARM, resample=False)
    print(
        f"{name:32} {len(scored):5} prompts  AUC {figures.auc.value:.3f}"
        f"  recall {figures.recall_at_1_percent.value:.3f} at 1% FPR,"
        f" {figures.recall_at_5_percent.value:.3f} at 5%"
    )


def report_families(scored: Sequence[Scored], head: Head) -> None:
    """The share above the thresholds by family, over all sources, and at the alarm threshold."""
    benign = numbers([each.score for each in scored if not each.attack])
    at1, at5 = strictest_needed(benign, 0.01), strictest_needed(benign, 0.05)
    families: dict[str, list[Scored]] = defaultdict(list)
    for each in scored:
        families[each.record.family or ""].append(each)
    print(f"{'family':32} {'n':>5}  at 1% FPR  at 5% FPR  F >= {ALARM}")
    for family in sorted(families, key=lambda name: (name.startswith("benign"), name)):
        members = families[family]
        counts = (
            sum(each.score > at1 for each in members),
            sum(each.score > at5 for each in members),
            sum(each.falsehood(head) >= ALARM for each in members),
        )
        print(f"{family:32} {len(members):5}" + "".join(f"  {count / len(members):9.2f}" for count in counts))


def report_alarms(scored: Sequence[Scored], heads: dict[str, Head], head: Head) -> None:
    """What reaches the alarm threshold, and what the calibration assumes."""
    without = {source: calibrated(each, _without(scored, source)) for source, each in heads.items()}
    for label, name in ((True, "attacks"), (False, "benign prompts")):
        those = [each for each in scored if each.attack is label]
        alarms = sum(each.falsehood(head) >= ALARM for each in those)
        unseen = sum(each.falsehood(without[each.record.source]) >= ALARM for each in those)
        print(
            f"F >= {ALARM}: {alarms / len(those):.1%} of {name};"
            f" {unseen / len(those):.1%} when the calibration too never saw the source"
        )
    caution = platt(scored)[1] - float(head.calibration[1])
    print(f"F is a probability where one prompt in {1 + math.exp(caution):.0f} is an attack")


def main() -> None:
    """Train, report, and write the numbers."""
    parser = argparse.ArgumentParser(
        prog="python -m training.neural",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="print the figures, write nothing")
    parser.add_argument(
        "--without-authored",
        action="store_true",
        help="print also the figures of heads trained without the texts written for this project",
    )
    options = parser.parse_args()
    records, model = all_records(), Remembering(encoder())
    scored, heads = left_out(records, model)
    head = calibrated(fit(records, model), scored)
    print("Every source left out in turn:")
    report("all", scored)
    report("public sources", [each for each in scored if not is_derived(each.record)])
    report("derived_A_*", [each for each in scored if is_derived(each.record)])
    if options.without_authored:
        report("trained without authored texts", left_out(development(), model)[0])
    report_families(scored, head)
    report_alarms(scored, heads, head)
    typed = [each for each in scored if expected_pattern(each.record) and each.falsehood(head) >= 0.3]
    right = sum(each.pattern == expected_pattern(each.record) for each in typed)
    print(f"pattern type right for {right} of {len(typed)} attacks with F >= 0.3")
    if not options.check:
        path = VOICES / "learned" / WEIGHTS_FILE
        head.save(path)
        print(f"wrote {WEIGHTS_FILE}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    with threadpool_limits(limits=1, user_api="blas"):  # more threads add numbers up in another order
        main()
