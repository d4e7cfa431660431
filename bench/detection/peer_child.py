"""Run by a rival's interpreter: a list of texts per prompt comes in, scores, alarms and times go out."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

RISKS = {"low": 0, "medium": 1, "high": 2, "critical": 3}
Judge = Callable[[str], tuple[float, bool]]
"""From a text to a score and whether an alarm is raised."""


def stackone_defender() -> Judge:
    """Patterns and a small model."""
    from stackone_defender import create_prompt_defense  # type: ignore[import-not-found]  # only in its own environment

    defense = create_prompt_defense(block_high_risk=True, require_tier2=True)
    defense.warmup_tier2()

    def judge(text: str) -> tuple[float, bool]:
        result = defense.defend_tool_result(text, "prompt")
        # The level of risk adds what its patterns found to what its model found; together they rank best.
        return (result.tier2_score or 0.0) + RISKS[result.risk_level], not result.allowed

    return judge


def jailguard() -> Judge:
    """A classifier over the embeddings of a sentence model."""
    import jailguard as detector  # type: ignore[import-not-found]  # likewise

    def judge(text: str) -> tuple[float, bool]:
        result = detector.detect(text)
        return result.score, result.is_injection

    return judge


def main() -> None:
    """Judge every text; of a prompt's texts the worst counts."""
    import psutil

    name = sys.argv[1]
    prompts = json.load(sys.stdin)
    process = psutil.Process()
    judge = {"stackone_defender": stackone_defender, "jailguard": jailguard}[name]()
    for texts in prompts[:3]:
        for text in texts:
            judge(text)
    scores, alarms = [], []
    clock, cpu = time.perf_counter(), time.process_time()
    for texts in prompts:
        results = [judge(text) for text in texts]
        scores.append(max((score for score, _ in results), default=0.0))
        alarms.append(any(alarm for _, alarm in results))
    each = 1000 / len(prompts)
    package = name.replace("_", "-")
    answer = {
        "name": f"{package} {version(package)}",
        "scores": scores,
        "alarms": alarms,
        "milliseconds": (time.perf_counter() - clock) * each,
        "cpu_milliseconds": (time.process_time() - cpu) * each,
        "megabytes": process.memory_info().rss / 2**20,
    }
    sys.stdout.write(json.dumps(answer))


main()
