"""Train what `embedded:skill` has learned: how much a line reads like an order hidden in a skill.

`python -m training.skill_lines` reads `training/data/skill_lines.toml` and, from `../shared/data`, the orders
of SKILL-INJECT and lines of real skills, rule files and manuals. A logistic regression over three sentence
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
from firecircle.voices.embedded.lenses.skill import LEARNED, SHORTEST, line_vectors, margins_of, oddness

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
WRITTEN = ROOT / "training" / "data" / "skill_lines.toml"
SHARED = ROOT.parent / "shared" / "data"
FOR_AGENTS = ("agent_skills", "cursorrules", "mcp_servers_docs")
FOR_PEOPLE = ("eng_practices", "handbook_18f", "owasp_sheets")
WEIGHT_OF_REAL = 300.0
"""All real lines together count as so many written ones."""
DECAY = 1.0
FOLDS = 5
SHARE = 0.97
"""The threshold: above the highest line of so many documents for agents that were left out."""
FEWEST_LINES = 8


def real_documents() -> list[tuple[str, list[Line]]]:
    """The source and the lines of each real document."""
    documents = []
    for name in ("dev", "dev2", "dev3"):
        for row in (SHARED / f"{name}.jsonl").read_text("utf-8").splitlines():
            record = json.loads(row)
            if record["source"] in (*FOR_AGENTS, *FOR_PEOPLE) and record["label"] == "benign":
                text = record["application"] or record["user"] or record["system"]
                lines = [line for line in lines_of(text) if len(line.text) > SHORTEST]
                if len(lines) >= FEWEST_LINES:
                    documents.append((record["source"], lines))
    return documents


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


def main() -> None:
    """Cross-validate, then train on everything and write the file."""
    written = tomllib.loads(WRITTEN.read_text("utf-8"))
    injections = [
        json.loads(row) for row in (SHARED / "skill_injections.jsonl").read_text("utf-8").splitlines()
    ]
    lines = [[line for line in lines_of(row["injection"]) if len(line.text) > SHORTEST] for row in injections]
    injected = [line_vectors(tuple(line.text for line in each)) for each in lines]
    orders, harmless = (line_vectors(tuple(written[name])) for name in ("orders", "harmless"))
    real = real_documents()
    documents = [line_vectors(tuple(line.text for line in each)) for _, each in real]
    # All documents of a source are left out together where it has one author.
    folds = [FOR_PEOPLE.index(s) if s in FOR_PEOPLE else n % FOLDS for n, (s, _) in enumerate(real)]
    highest: dict[int, float] = {}
    hits: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for fold in range(FOLDS):
        kept = [vectors for number, vectors in enumerate(injected) if number % FOLDS != fold]
        others = [document for at, document in zip(folds, documents, strict=True) if at != fold]
        weights = fitted(np.vstack([orders, *kept]), harmless, np.vstack(others))

        def best(vectors: Array, document: Array, of: list[Line], weights: Array = weights) -> float:
            scores = vectors @ weights[:-1] + weights[-1] + oddness(vectors, document) - margins_of(of)
            return float(scores.max())

        left_out = [n for n, at in enumerate(folds) if at == fold]
        highest |= {n: best(documents[n], documents[n], real[n][1]) for n in left_out}
        hosts = [n for n in left_out if real[n][0] in FOR_AGENTS][:8]
        for number in range(fold, len(injected), FOLDS):
            for host in hosts:
                document = np.vstack([documents[host], injected[number]])
                hits[injections[number]["kind"]].append(
                    (best(injected[number], document, lines[number]), highest[host])
                )
    for_agents = np.array([score for n, score in highest.items() if real[n][0] in FOR_AGENTS])
    threshold = float(np.quantile(for_agents, SHARE))
    for name, chosen in (("agents", for_agents), ("all", np.array(list(highest.values())))):
        print(f"documents left out, {name}: {np.mean(chosen > threshold):.3f} of {len(chosen)} alarm")
    for kind, found in hits.items():
        caught = np.mean([score > threshold for score, _ in found])
        right = np.mean([score > base for score, base in found])
        better = np.mean([np.mean(max(pair) > for_agents) for pair in found])
        print(f"{kind}: found {caught:.2f} of {len(found)}, right line {right:.2f}, AUC {better:.2f}")
    weights = fitted(np.vstack([orders, *injected]), harmless, np.vstack(documents))
    np.savez(LEARNED, weights=weights.astype(np.float32), threshold=np.float32(threshold))
    print(f"alarm from {threshold:.2f}; wrote {LEARNED}")


if __name__ == "__main__":
    main()
