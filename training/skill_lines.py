"""Train what `embedded:skill` has learned: how much a line reads like an order hidden in a skill.

`python -m training.skill_lines` reads `training/data/skill_lines.toml` and, from `../shared/data`, the orders
of SKILL-INJECT and lines of real skills, rule files and manuals. A logistic regression over both sentence
encoders is written to `voices/embedded/lenses/skill.npz` with the score from which on a line alarms. What it
finds of documents and orders left out of training is printed.
"""

from __future__ import annotations

import json
import tomllib
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from firecircle.voices.embedded.lenses.markdown import Line, lines_of
from firecircle.voices.embedded.lenses.skill import LEARNED, line_vectors, margins_of, nearest_likeness

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
WRITTEN = ROOT / "training" / "data" / "skill_lines.toml"
SHARED = ROOT.parent / "shared" / "data"
SOURCES = ("agent_skills", "cursorrules", "mcp_servers_docs", "eng_practices", "handbook_18f", "owasp_sheets")
WEIGHT_OF_REAL = 200.0
"""All real lines together count as so many written ones."""
DECAY, ODDNESS = 1.0, 1.0
FOLDS = 5
SHARE, SAFETY = 0.97, 1.0
"""The threshold: above the highest line of so many documents left out, and a unit more, since short skills of
ours score higher than these."""
SHORTEST, FEWEST_LINES = 20, 8


def real_documents() -> list[list[Line]]:
    """The lines of each real document."""
    documents: dict[str, list[Line]] = defaultdict(list)
    for name in ("dev", "dev2", "dev3"):
        for row in (SHARED / f"{name}.jsonl").read_text("utf-8").splitlines():
            record = json.loads(row)
            if record["source"] in SOURCES and record["label"] == "benign":
                text = record["application"] or record["user"] or record["system"]
                document = f"{record['source']}/{record['id'].split(':')[1].split('-')[0]}"
                documents[document] += [line for line in lines_of(text) if len(line.text) > SHORTEST]
    return [documents[name] for name in sorted(documents)]


def fitted(orders: Array, harmless: Array, real: Array) -> Array:
    """The weights of a logistic regression, the last one for no feature."""
    rows = np.vstack([orders, harmless, real])
    sides = np.r_[np.ones(len(orders)), -np.ones(len(harmless) + len(real))]
    counts = np.r_[np.ones(len(orders) + len(harmless)), np.full(len(real), WEIGHT_OF_REAL / len(real))]

    def loss(weights: Array) -> tuple[float, Array]:
        margin = sides * (rows @ weights[:-1] + weights[-1])
        pull = -counts * sides / (1 + np.exp(margin))
        value = (counts * np.logaddexp(0, -margin)).sum() + DECAY / 2 * (weights[:-1] @ weights[:-1])
        return float(value), np.append(rows.T @ pull + DECAY * weights[:-1], pull.sum())

    found: Array = minimize(loss, np.zeros(rows.shape[1] + 1), jac=True, method="L-BFGS-B").x
    return found


def scored(weights: Array, vectors: Array, likeness: Array) -> Array:
    """How much each line reads like a hidden order, the more the less its document is like it."""
    scores: Array = vectors @ weights[:-1] + weights[-1] - ODDNESS * likeness
    return scores


def main() -> None:
    """Cross-validate, then train on everything and write the file."""
    written = tomllib.loads(WRITTEN.read_text("utf-8"))
    injections = [
        json.loads(row) for row in (SHARED / "skill_injections.jsonl").read_text("utf-8").splitlines()
    ]
    lines = [[line for line in lines_of(row["injection"]) if len(line.text) > SHORTEST] for row in injections]
    injected = [line_vectors([line.text for line in each]) for each in lines]
    injected_margins = [margins_of(each) for each in lines]
    orders, harmless = line_vectors(written["orders"]), line_vectors(written["harmless"])
    real = [each for each in real_documents() if each]
    documents = [line_vectors([line.text for line in each]) for each in real]
    margins = [margins_of(each) for each in real]
    own = [nearest_likeness(document, document, itself=True) for document in documents]
    highest: list[float] = []
    hits: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for fold in range(FOLDS):
        kept = [vectors for number, vectors in enumerate(injected) if number % FOLDS != fold]
        others = [document for number, document in enumerate(documents) if number % FOLDS != fold]
        weights = fitted(np.vstack([orders, *kept]), harmless, np.vstack(others))
        left_out = [n for n in range(len(documents)) if n % FOLDS == fold]
        base = {n: float((scored(weights, documents[n], own[n]) - margins[n]).max()) for n in left_out}
        highest += base.values()
        for number in range(fold, len(injected), FOLDS):
            for host in [n for n in left_out if len(documents[n]) >= FEWEST_LINES][:5]:
                likeness = nearest_likeness(injected[number], documents[host])
                scores = scored(weights, injected[number], likeness) - injected_margins[number]
                own_score = float(scores.max())
                hits[injections[number]["kind"]].append((own_score, base[host], host))
    threshold = float(np.quantile(highest, SHARE)) + SAFETY
    print(f"documents left out: {np.mean(np.array(highest) >= threshold):.3f} of {len(highest)} alarm")
    for kind, found in hits.items():
        rates = [(max(own_score, base) >= threshold, own_score > base) for own_score, base, _ in found]
        better = [np.mean(max(own_score, base) > np.array(highest)) for own_score, base, _ in found]
        alarms, right = np.mean(rates, axis=0)
        print(
            f"{kind}: found {alarms:.2f} of {len(found)}, right line {right:.2f}, AUC {np.mean(better):.2f}"
        )
    weights = fitted(np.vstack([orders, *injected]), harmless, np.vstack(documents))
    np.savez(LEARNED, weights=weights.astype(np.float32), threshold=np.float32(threshold))
    print(f"alarm from {threshold:.2f}; {len(highest)} real documents; wrote {LEARNED}")


if __name__ == "__main__":
    main()
