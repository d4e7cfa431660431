"""Train the neural voice: `python -m training.neural` writes voices/embedded/learned/neural.npz.

Needs the extra `neural` and ../shared/data/dev.jsonl; the texts written for this project
(training/data/authored_*.jsonl) are always trained on and never scored. First every source of the development
data is left out in turn: its prompts are scored by a head that never saw a text of it; all figures and the
calibration come from those scores. The same data gives the same numbers, in a minute or two.

--check              print the figures, write nothing
--without-authored   print also the figures of heads trained without the texts written for this project
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from firecircle.prompt import EarlierTurn, MultiNeutrosophicPrompt
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

Flags = NDArray[np.bool_]

ROOT = Path(__file__).resolve().parent.parent
DEV = ROOT.parent / "shared" / "data" / "dev.jsonl"
AUTHORED = tuple(sorted((ROOT / "training" / "data").glob("authored_*.jsonl")))

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
ALARM = 0.7
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
class Record:
    """One labelled prompt."""

    id: str
    source: str
    family: str
    attack: bool
    prompt: MultiNeutrosophicPrompt


@dataclass(frozen=True, slots=True)
class Scored:
    """A record with the score of the worst window of each layer, by a head that never saw its source."""

    record: Record
    layers: dict[str, float]
    pattern: str

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


def load() -> list[Record]:
    """The development data and the texts written for this project."""
    if not DEV.exists():
        raise SystemExit(f"{DEV} is not there: the training data is kept outside the repository")
    records = []
    for path in (DEV, *AUTHORED):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                said = json.loads(line)
                turns = said.get("turns")
                prompt = MultiNeutrosophicPrompt(
                    system=said.get("system") or "",
                    application=said.get("application") or "",
                    user=said.get("user") or "",
                    turns=None if turns is None else tuple(EarlierTurn(**turn) for turn in turns),
                )
                source = said.get("source") or path.stem
                records.append(Record(said["id"], source, said["family"], said["label"] == "attack", prompt))
    return records


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
    found = logistic(bags.rows, attack, weight, pull)
    for _ in range(LOOKS):
        score = bags.rows @ found[:-1]
        worst = np.full(len(bags.attack), -np.inf, np.float32)
        np.maximum.at(worst, bags.owner, score)
        chosen = np.where(attack, (score >= worst[bags.owner]) * base, weight)
        found = logistic(bags.rows, attack, chosen, pull, found)
    return found


def logistic(rows: Array, attack: Flags, weight: Array, pull: float, start: Array | None = None) -> Array:
    """A logistic regression by Newton's method, both labels weighing the same; the offset comes last."""
    counts = weight > 0
    rows, attack, weight = rows[counts], attack[counts], weight[counts]
    share = (
        np.where(attack, weight / weight[attack].sum(), weight / weight[~attack].sum()).astype(np.float32) / 2
    )
    seen = np.hstack([rows, np.ones((len(rows), 1), np.float32)])
    ridge = np.append(np.full(rows.shape[1], pull, np.float32), np.float32(0))
    found = np.zeros(seen.shape[1], np.float32) if start is None else start
    for _ in range(12):
        chance = 1 / (1 + np.exp(-np.clip(seen @ found, -30, 30)))
        slope = seen.T @ (share * (chance - attack)) + ridge * found
        bend = (seen * (share * np.maximum(chance * (1 - chance), 1e-4))[:, None]).T @ seen + np.diag(ridge)
        step = np.linalg.solve(bend.astype(np.float64), slope.astype(np.float64))
        largest = float(np.abs(step).max())
        found = (found - step * min(1.0, 3 / largest)).astype(np.float32)
        if largest < 1e-3:
            break
    return found


def fit(records: Sequence[Record], model: Remembering) -> Head:
    """The head of these records, not yet calibrated."""
    center = model.skim(sorted({text for record in records for text in _stretches(record.prompt)})).mean(0)
    skimmed = [skim(record.prompt, center, model) for record in records]
    likeness = np.concatenate([each.likeness for each in skimmed])
    usual = np.stack([np.nanmean(likeness, 0), np.nanstd(likeness, 0) / RELATION_SCALE]).astype(np.float32)
    sizes = Counter(record.source for record in records)
    attack = np.array([record.attack for record in records])
    weight = np.array([sizes[record.source] ** -0.5 for record in records], np.float32)

    vectors = np.concatenate([each.vectors for each in skimmed])
    owner = np.repeat(np.arange(len(records)), [len(each.windows) for each in skimmed])
    axes = Axes.of(np.unique(vectors, axis=0), 1)
    rows = np.hstack([axes(vectors), standard(likeness, usual)])
    weights = fit_worst(Bags(rows, owner, attack, weight), PULL_SKIM)
    skim_weights = np.append(axes.back(weights[: -len(usual[0]) - 1])[0], weights[-len(usual[0]) - 1 : -1])
    head = Head(center, usual, skim_weights.astype(np.float32), *(np.zeros(0, np.float32),) * 4)

    places = [worst_first(each, head)[:MOST_READ] for each in skimmed]
    owner = np.repeat(np.arange(len(records)), [len(found) for found in places])
    chosen = [
        each.text(each.windows[at]) for each, found in zip(skimmed, places, strict=True) for at in found
    ]
    vectors = model.read(chosen)
    likeness = np.concatenate([each.likeness[found] for each, found in zip(skimmed, places, strict=True)])
    axes = Axes.of(np.unique(vectors, axis=0), 2)
    rows = np.hstack([axes(vectors), standard(likeness, usual)])
    weights = fit_worst(Bags(rows, owner, attack, weight), PULL_READ)
    raw, offset = axes.back(weights[: -len(usual[0]) - 1], float(weights[-1]))
    read_weights = np.concatenate([raw, weights[-len(usual[0]) - 1 : -1], [offset]]).astype(np.float32)
    by_user = np.array(
        [
            each.windows[at].layer == "user"
            for each, found in zip(skimmed, places, strict=True)
            for at in found
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
        if records[whose].family in TYPE_OF_FAMILY and (
            whose not in worst or score[at] > score[worst[whose]]
        ):
            worst[int(whose)] = at
    kinds = np.array([TYPES.index(TYPE_OF_FAMILY[records[whose].family]) for whose in worst])
    share = 1 / np.bincount(kinds, minlength=len(TYPES))[kinds] / len(TYPES)
    rows = np.hstack([axes(vectors[list(worst.values())]), np.ones((len(worst), 1), np.float32)])
    ridge = np.diag(np.append(np.full(rows.shape[1] - 1, PULL_TYPES), 0.0))
    wanted = np.eye(len(TYPES))[kinds]
    found = np.linalg.solve((rows * share[:, None]).T @ rows + ridge, (rows * share[:, None]).T @ wanted)
    mapped = [axes.back(column[:-1].astype(np.float32), float(column[-1])) for column in found.T]
    return np.stack([np.append(raw, offset) for raw, offset in mapped]).astype(np.float32)


def score(record: Record, head: Head, model: Remembering) -> Scored:
    """A record's scores by a head."""
    seen = skim(record.prompt, head.center, model)
    places = worst_first(seen, head)[:MOST_READ]
    vectors = model.read([seen.text(seen.windows[at]) for at in places])
    rows = np.hstack([vectors, standard(seen.likeness[places], head.usual)])
    scores = rows @ head.read[:-1] + head.read[-1] - CROWD * math.log(seen.crowd)
    layers: dict[str, float] = {}
    for at, found in zip(places, scores, strict=True):
        layer = seen.windows[at].layer
        layers[layer] = max(float(found), layers.get(layer, -30.0))
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
    benign = [each for each in scored if not each.record.attack]
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
    attack = np.array([each.record.attack for each in scored])
    slope, offset = logistic(rows, attack, np.ones(len(scored), np.float32), 0.0)
    return float(slope), float(offset)


def heads_by_source(records: Sequence[Record], model: Remembering) -> dict[str, Head]:
    """For each source a head trained and calibrated without it: what an honest benchmark judges with."""
    scored, heads = left_out(records, model)
    return {source: calibrated(head, _without(scored, source)) for source, head in heads.items()}


def _without(scored: Sequence[Scored], source: str) -> list[Scored]:
    return [each for each in scored if each.record.source != source]


def auc(scored: Sequence[tuple[float, bool]]) -> float:
    """The chance that an attack scores above a benign prompt."""
    benign = np.sort([found for found, attack in scored if not attack])
    attacks = np.array([found for found, attack in scored if attack])
    below, upto = np.searchsorted(benign, attacks, "left"), np.searchsorted(benign, attacks, "right")
    return float((below + upto).mean() / 2 / len(benign))


def threshold(scored: Sequence[Scored], share: float) -> float:
    """The score that so many of the benign prompts exceed."""
    benign = sorted((each.score for each in scored if not each.record.attack), reverse=True)
    return benign[int(share * len(benign))]


def recall(scored: Sequence[Scored], least: float) -> float:
    """The share of attacks above a score."""
    found = [each.score > least for each in scored if each.record.attack]
    return sum(found) / len(found) if found else math.nan


def report(name: str, scored: Sequence[Scored]) -> None:
    """One line of figures."""
    pairs = [(each.score, each.record.attack) for each in scored]
    at1, at5 = (recall(scored, threshold(scored, share)) for share in (0.01, 0.05))
    print(
        f"{name:32} {len(pairs):5} prompts  AUC {auc(pairs):.3f}  recall {at1:.3f} at 1% FPR, {at5:.3f} at 5%"
    )


def report_families(scored: Sequence[Scored], head: Head) -> None:
    """The share above the thresholds by family, over all sources, and at the alarm threshold."""
    at1, at5 = threshold(scored, 0.01), threshold(scored, 0.05)
    families: dict[str, list[Scored]] = defaultdict(list)
    for each in scored:
        families[each.record.family].append(each)
    print(f"{'family':32} {'n':>5}  at 1% FPR  at 5% FPR  F >= {ALARM}")
    for family in sorted(families, key=lambda name: (name.startswith("benign"), name)):
        found = families[family]
        shares = (
            sum(each.score > at1 for each in found),
            sum(each.score > at5 for each in found),
            sum(each.falsehood(head) >= ALARM for each in found),
        )
        print(f"{family:32} {len(found):5}" + "".join(f"  {share / len(found):9.2f}" for share in shares))


def report_alarms(scored: Sequence[Scored], heads: dict[str, Head], head: Head) -> None:
    """What reaches the alarm threshold, and what the calibration assumes."""
    apart = {source: calibrated(each, _without(scored, source)) for source, each in heads.items()}
    for label, name in ((True, "attacks"), (False, "benign prompts")):
        those = [each for each in scored if each.record.attack is label]
        found = sum(each.falsehood(head) >= ALARM for each in those)
        unseen = sum(each.falsehood(apart[each.record.source]) >= ALARM for each in those)
        print(
            f"F >= {ALARM}: {found / len(those):.1%} of {name};"
            f" {unseen / len(those):.1%} when the calibration too never saw the source"
        )
    caution = platt(scored)[1] - float(head.calibration[1])
    print(f"F is a probability where one prompt in {1 + math.exp(caution):.0f} is an attack")


def main() -> None:
    """Train, report, and write the numbers."""
    records, model = load(), Remembering(encoder())
    authored = {path.stem for path in AUTHORED}
    scored, heads = left_out(records, model)
    head = calibrated(fit(records, model), scored)
    print("Every source left out in turn:")
    report("all", scored)
    report("public sources", [each for each in scored if not each.record.source.startswith("derived_A")])
    report("derived_A_*", [each for each in scored if each.record.source.startswith("derived_A")])
    if "--without-authored" in sys.argv:
        report(
            "trained without authored texts",
            left_out([record for record in records if record.source not in authored], model)[0],
        )
    report_families(scored, head)
    report_alarms(scored, heads, head)
    typed = [each for each in scored if each.record.family in TYPE_OF_FAMILY and each.falsehood(head) >= 0.3]
    right = sum(each.pattern == TYPE_OF_FAMILY[each.record.family] for each in typed)
    print(f"pattern type right for {right} of {len(typed)} attacks with F >= 0.3")
    if "--check" not in sys.argv:
        path = ROOT / "src/firecircle/voices/embedded/learned" / WEIGHTS_FILE
        head.save(path)
        print(f"wrote {WEIGHTS_FILE}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    with threadpool_limits(limits=1, user_api="blas"):  # more threads add numbers up in another order
        main()
