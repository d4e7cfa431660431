"""How often the keyword heuristic names a pattern wrongly, on descriptions its author did not write.

The documents ask to move to `llm` classification when the error passes 20%.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from bench.figures import shown
from firecircle import classify_pattern_heuristic
from firecircle.lab.statistics.estimate import wilson

LABELLED = Path(__file__).parent / "data" / "pattern_descriptions.jsonl"
MOVE_TO_LLM_ABOVE = 0.20


def main() -> None:
    """Print the error, per type and over all, and the commonest confusions."""
    labelled = [json.loads(line) for line in LABELLED.read_text("utf-8").splitlines()]
    named = [(item["type"], classify_pattern_heuristic(item["description"])) for item in labelled]
    wrong = Counter(pair for pair in named if pair[0] != pair[1])
    sizes = Counter(expected for expected, _ in named)
    print(f"{'type':28} right / all   error")
    for kind in sorted(sizes):
        missed = sum(n for (expected, _), n in wrong.items() if expected == kind)
        print(f"{kind:28} {sizes[kind] - missed:5} / {sizes[kind]:<5} {missed / sizes[kind]:6.1%}")
    error = wilson(wrong.total(), len(named))
    verdict = "move to llm" if (error.value or 0.0) > MOVE_TO_LLM_ABOVE else "the heuristic suffices"
    print(f"{'all':28} {len(named) - wrong.total():5} / {len(named):<5} {shown(error)}  ({verdict})")
    print("commonest confusions:")
    for (expected, got), n in wrong.most_common(8):
        print(f"  {n:3}  {expected} taken for {got}")


if __name__ == "__main__":
    main()
