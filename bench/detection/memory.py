"""Memory of a circle in a fresh process: training in this one would hide it.

`python -m bench.detection.memory VOICE …` judges the bundled examples and prints the megabytes held before
anything is imported and after, and the most ever held.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Memory(NamedTuple):
    """Megabytes."""

    before: float
    after: float
    most: float


def memory_of(models: Sequence[str]) -> Memory:
    """What a circle of these voices takes."""
    command = [sys.executable, "-m", "bench.detection.memory", *models]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return Memory(*json.loads(ran.stdout))


def main() -> None:
    """Measure this process."""
    import psutil

    process = psutil.Process()
    before = process.memory_info().rss
    from firecircle.circle.config import FireCircleConfig
    from firecircle.examples import load_examples
    from firecircle.guard import PromptGuard

    config = FireCircleConfig.embedded(models=tuple(sys.argv[1:]), seed=1)
    for example in load_examples():
        prompt = example.prompt
        PromptGuard().evaluate_sync(
            prompt.system, prompt.application, prompt.user, "fire_circle", config, turns=prompt.turns
        )
    print(json.dumps([size / 2**20 for size in (before, process.memory_info().rss, _most_ever())]))


def _most_ever() -> int:
    """The most bytes this process held. What the parent held before this began is not part of it."""
    status = Path("/proc/self/status")
    if status.exists():  # where getrusage would count the parent in
        return 1024 * int(next(line for line in status.open() if line.startswith("VmHWM")).split()[1])
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
