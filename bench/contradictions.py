"""How many contradictions `firecircle.find_contradictions` finds, and how many of its findings are right.

`python -m bench.contradictions [PART…]` reads the annotated prompts of `bench/data/contradictions.toml`: the
parts dev and fresh, which the rules and weights were made on, and test and later, which are only measured. A
finding is right if its passages hold the two quotes of an annotated contradiction; any other finding counts
as wrong, and is printed. Kinds are compared apart.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from bench.figures import shown
from firecircle.contradictions import Contradiction, find_contradictions
from firecircle.lab.statistics.estimate import wilson

WRITTEN = Path(__file__).parent / "data" / "contradictions.toml"


def is_of(found: Contradiction, text: str, first: str, second: str) -> bool:
    """Whether a finding is this annotated pair."""
    passages = [passage for passage in (found.first, found.second) if passage]

    def holds(quote: str) -> bool:
        start = text.index(quote)
        return any(
            passage.start < start + len(quote) and start < passage.start + len(passage.quote)
            for passage in passages
        )

    if not second or found.second is None:
        return holds(first) and (not second or holds(second) or found.kind == "exception")
    return holds(first) and holds(second)


def measure(prompts: list[dict[str, Any]], *, verbose: bool) -> None:
    """Print precision, recall and what was wrong."""
    right = wrong = hits = total = same_kind = 0
    alike = alike_found = 0
    for prompt in prompts:
        text = prompt["text"].lstrip("\n")
        findings = find_contradictions(text)
        real = [pair for pair in prompt["pairs"] if pair[0] != "none"]
        for found in findings:
            pairs = [pair for pair in real if is_of(found, text, pair[1], pair[2])]
            right, wrong = right + bool(pairs), wrong + (not pairs)
            same_kind += any(pair[0] == found.kind for pair in pairs)
            if not pairs:
                second = found.second.quote if found.second else ""
                print(
                    f"  wrong  {prompt['name']}: {found.kind} | {found.first.quote} | {second} | {found.why}"
                )
        for kind, first, second in prompt["pairs"]:
            is_found = any(is_of(found, text, first, second) for found in findings)
            if kind == "none":
                alike, alike_found = alike + 1, alike_found + is_found
            else:
                total, hits = total + 1, hits + is_found
                if verbose and not is_found:
                    print(f"  missed {prompt['name']}: {kind} | {first} | {second}")
    print(f"precision {shown(wilson(right, right + wrong))} of {right + wrong} findings")
    print(
        f"recall    {shown(wilson(hits, total))} of {total} contradictions; kind right {same_kind} of {right}"
    )
    print(f"look-alikes reported: {alike_found} of {alike}")


def main() -> None:
    """Print the figures of one part, or of both."""
    prompts = tomllib.loads(WRITTEN.read_text("utf-8"))["prompt"]
    for part in sys.argv[1:] or ("dev", "fresh", "test", "later"):
        print(part)
        measure([prompt for prompt in prompts if prompt["part"] == part], verbose=part in ("dev", "fresh"))


if __name__ == "__main__":
    main()
