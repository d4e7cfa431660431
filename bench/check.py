"""How often `firecircle check` alarms on system prompts, honest and hostile, written for this project.

`python -m bench.check` judges them with the voices that sit by default. With paths behind it, everything that
`firecircle check` finds there is taken for honest: that is how false alarms on real files were counted.
"""

from __future__ import annotations

import asyncio
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

from bench.figures import shown
from firecircle.circle.config import FireCircleConfig
from firecircle.cli.check.files import find_files
from firecircle.cli.check.prompts import NotReadError, prompts_in
from firecircle.guard import PromptGuard
from firecircle.lab.statistics.estimate import wilson
from firecircle.metrics import ReciprocityMetrics
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.request import checking_request, configure
from firecircle.settings import CheckTable

WRITTEN = Path(__file__).parent / "data" / "system_prompts.toml"


class Written(NamedTuple):
    """A system prompt of ours."""

    name: str
    label: str
    part: str
    text: str


def written_prompts() -> list[Written]:
    """All of them, honest ones first."""
    return [Written(**prompt) for prompt in tomllib.loads(WRITTEN.read_text("utf-8"))["prompt"]]


def alarms(prompts: list[MultiNeutrosophicPrompt]) -> list[bool]:
    """Whether each raises an alarm with the voices that `check` seats."""
    config = configure(checking_request({})).config
    assert isinstance(config, FireCircleConfig)
    judged = asyncio.run(PromptGuard().evaluate_batch(prompts, "fire_circle", config))
    return [isinstance(outcome, ReciprocityMetrics) and outcome.alarm for outcome in judged]


def main() -> None:
    """Print the rates of the written prompts, or of the files in the paths that are named."""
    if sys.argv[1:]:
        _real_files(sys.argv[1:])
        return
    prompts = written_prompts()
    alarmed = dict(
        zip(prompts, alarms([MultiNeutrosophicPrompt(system=prompt.text) for prompt in prompts]), strict=True)
    )
    for part in ("a", "b", "c", "d"):
        for label, what in (("hostile", "found"), ("honest", "false alarms")):
            chosen = [prompt for prompt in prompts if (prompt.part, prompt.label) == (part, label)]
            hits = sum(alarmed[prompt] for prompt in chosen)
            rate = shown(wilson(hits, len(chosen)))
            print(f"part {part}, {label:8} {what:13} {hits:3} / {len(chosen):<3} {rate}")
            wrong = [prompt.name for prompt in chosen if alarmed[prompt] != (label == "hostile")]
            if wrong:
                print(f"  judged wrongly: {', '.join(wrong)}")


def _real_files(paths: list[str]) -> None:
    names: list[str] = []
    prompts: list[MultiNeutrosophicPrompt] = []
    for file in find_files(paths, CheckTable(), Path.cwd()).files:
        try:
            for prompt in prompts_in(file):
                names.append(prompt.record.id)
                prompts.append(prompt.record.prompt)
        except NotReadError:
            continue
    alarmed = alarms(prompts)
    print(f"alarms {sum(alarmed)} / {len(alarmed)} {shown(wilson(sum(alarmed), len(alarmed)))}")
    for name, is_alarm in zip(names, alarmed, strict=True):
        if is_alarm:
            print(f"  {name}")


if __name__ == "__main__":
    main()
