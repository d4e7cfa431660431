"""Run by the rival's interpreter: a list of texts per prompt comes in, scores, alarms and times go out."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

RISKS = {"low": 0, "medium": 1, "high": 2, "critical": 3}


def main() -> None:
    """Judge every text; of a prompt's texts the worst counts."""
    import psutil
    from stackone_defender import create_prompt_defense  # type: ignore[import-not-found]

    prompts = json.load(sys.stdin)
    process = psutil.Process()
    defense = create_prompt_defense(block_high_risk=True, require_tier2=True)
    defense.warmup_tier2()
    for texts in prompts[:3]:
        for text in texts:
            defense.defend_tool_result(text, "prompt")
    scores, alarms = [], []
    clock, cpu = time.perf_counter(), time.process_time()
    for texts in prompts:
        results = [defense.defend_tool_result(text, "prompt") for text in texts]
        # The level of risk adds what its patterns found to what its model found; together they rank best.
        ranks = ((result.tier2_score or 0.0) + RISKS[result.risk_level] for result in results)
        scores.append(max(ranks, default=0.0))
        alarms.append(any(not result.allowed for result in results))
    each = 1000 / len(prompts)
    answer = {
        "name": f"stackone-defender {version('stackone-defender')}",
        "scores": scores,
        "alarms": alarms,
        "milliseconds": (time.perf_counter() - clock) * each,
        "cpu_milliseconds": (time.process_time() - cpu) * each,
        "megabytes": process.memory_info().rss / 2**20,
    }
    sys.stdout.write(json.dumps(answer))


main()
