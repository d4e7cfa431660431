"""Fit how much each sign of a clash counts, for `firecircle.find_contradictions`.

`python -m training.contradictions` reads the parts "dev" and "fresh" of `bench/data/contradictions.toml`, and
every second rule file, skill and system prompt of `../shared/data` as free of contradictions. It writes a
logistic regression to `contradictions/clashes.json` and prints the figures of each prompt when that is left
out; `python -m bench.contradictions` measures the parts that are never read here.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from firecircle.contradictions import clashes
from firecircle.contradictions.clashes import SIGNS, Clash, clashes_in, likeness_of
from firecircle.contradictions.directives import Directive, directives_in

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
WRITTEN = ROOT / "bench" / "data" / "contradictions.toml"
SHARED = ROOT.parent / "shared" / "data"
WEIGHTS = Path(clashes.__file__).with_name("clashes.json")
SOURCES = ("agent_skills", "cursorrules", "mcp_servers_docs")
PARTS = ("dev", "fresh")
WEIGHT_OF_REAL = 1_000.0
"""All pairs of real texts together count as so many of the written ones."""
WEIGHT_OF_ALIKE = 3.0
"""So much more does an annotated look-alike count than any other harmless pair."""
DECAY = 10.0
THRESHOLD = -0.3
LONGEST = 12_000


def real_texts() -> list[str]:
    """Rule files, skills and system prompts that were published."""
    texts = []
    for name in ("dev", "dev2", "dev3"):
        for row in (SHARED / f"{name}.jsonl").read_text("utf-8").splitlines():
            record = json.loads(row)
            text = max((record[layer] or "" for layer in ("system", "application", "user")), key=len)
            if record["label"] == "benign" and (
                record["source"] in SOURCES or (text == record["system"] and len(text) > 600)
            ):
                texts.append(text[:LONGEST])
    return list(dict.fromkeys(texts))


def read(text: str) -> tuple[list[Directive], list[Clash], Array]:
    """The clauses of a text, the pairs that may clash, and their signs."""
    directives = list(directives_in(text))
    found = list(clashes_in(directives, likeness_of(directives))) if directives else []
    return directives, found, np.array([clash.signs for clash in found]).reshape(-1, len(SIGNS))


def annotated(
    prompt: dict[str, Any], directives: list[Directive], found: list[Clash], *, alike: bool = False
) -> Array:
    """Which pairs hold the two quotes of an annotated contradiction, or of a look-alike."""
    text = prompt["text"].lstrip("\n")
    chosen = [pair[1:] for pair in prompt["pairs"] if (pair[0] == "none") == alike]
    real = [[(text.index(quote), quote) for quote in pair] for pair in chosen]

    def holds(at: int, place: tuple[int, str]) -> bool:
        start, quote = place
        return directives[at].start < start + len(quote) and start < directives[at].end

    return np.array(
        [
            any(
                quote_of_second[1]
                and (
                    (holds(clash.first, quote_of_first) and holds(clash.second, quote_of_second))
                    or (holds(clash.first, quote_of_second) and holds(clash.second, quote_of_first))
                )
                for quote_of_first, quote_of_second in real
            )
            for clash in found
        ],
        dtype=float,
    )


def fitted(signs: Array, sides: Array, counts: Array) -> Array:
    """The weights of a logistic regression, the last one for no sign."""

    def loss(weights: Array) -> tuple[float, Array]:
        margin = sides * (signs @ weights[:-1] + weights[-1])
        pull = -counts * sides / (1 + np.exp(margin))
        value = (counts * np.logaddexp(0, -margin)).sum() + DECAY / 2 * (weights[:-1] @ weights[:-1])
        return float(value), np.append(signs.T @ pull + DECAY * weights[:-1], pull.sum())

    found: Array = minimize(loss, np.zeros(signs.shape[1] + 1), jac=True, method="L-BFGS-B").x
    return found


def main() -> None:
    """Cross-validate, train and write."""
    prompts = [
        prompt for prompt in tomllib.loads(WRITTEN.read_text("utf-8"))["prompt"] if prompt["part"] in PARTS
    ]
    read_prompts = [read(prompt["text"].lstrip("\n")) for prompt in prompts]
    labels = [
        annotated(prompt, directives, found)
        for prompt, (directives, found, _) in zip(prompts, read_prompts, strict=True)
    ]
    counts = [
        1 + WEIGHT_OF_ALIKE * annotated(prompt, directives, found, alike=True)
        for prompt, (directives, found, _) in zip(prompts, read_prompts, strict=True)
    ]
    spread = np.vstack([signs for _, _, signs in read_prompts]).std(axis=0) + 1e-9
    signs = [each / spread for _, _, each in read_prompts]
    harmless = np.vstack([read(text)[2] for text in real_texts()[::2]]) / spread

    def trained(numbers: list[int]) -> Array:
        labelled = np.concatenate([2 * labels[number] - 1 for number in numbers])
        return fitted(
            np.vstack([*(signs[number] for number in numbers), harmless]),
            np.r_[labelled, -np.ones(len(harmless))],
            np.r_[
                np.concatenate([counts[number] for number in numbers]),
                np.full(len(harmless), WEIGHT_OF_REAL / len(harmless)),
            ],
        )

    left_out: dict[str, list[float]] = {part: [] for part in PARTS}
    for number, prompt in enumerate(prompts):
        weights = trained([other for other in range(len(prompts)) if other != number])
        reported = signs[number] @ weights[:-1] + weights[-1] >= THRESHOLD
        left_out[prompt["part"]] += labels[number][reported].tolist()
    for part, right in left_out.items():
        print(f"{part}, each prompt left out: {sum(right):.0f} of {len(right)} pairs reported are right")
    weights = trained(list(range(len(prompts))))
    document = {
        "weights": {
            name: round(float(weight), 4) for name, weight in zip(SIGNS, weights[:-1] / spread, strict=True)
        },
        "threshold": round(THRESHOLD - float(weights[-1]), 4),
    }
    WEIGHTS.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    print(f"wrote {WEIGHTS}")


if __name__ == "__main__":
    main()
