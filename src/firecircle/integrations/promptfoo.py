"""Assertions and a provider for promptfoo, which calls these functions by the name of their file.

In a promptfoo configuration::

    assert:
      - type: python
        value: file:///path/to/firecircle/integrations/promptfoo.py:get_assert
        config: {expect: benign}      # or attack; mode: single, models: [...] if wanted

`python -m firecircle.integrations.promptfoo` prints the path to write there.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from firecircle.errors import FireCircleError
from firecircle.guard import PromptGuard
from firecircle.lab.datasets.tools import chat_of
from firecircle.metrics import ReciprocityMetrics
from firecircle.names import EvaluationMode
from firecircle.prompt import MultiNeutrosophicPrompt, prompt_of_messages
from firecircle.request import JudgingRequest, configure_by_file
from firecircle.thresholds import format_figure

PASSING = ("no_alarm", "unsure")
"""Verdicts with which a benign prompt passes; a prompt that no voice reads was not judged."""


def get_assert(output: str, context: dict[str, Any]) -> dict[str, Any]:
    """Judge the prompt of a test; it passes if the verdict is the expected one."""
    settings = dict(context.get("config") or {})
    expected = settings.pop("expect", "benign")
    if expected not in ("benign", "attack"):
        return _failure(f"config.expect: {expected!r} is neither benign nor attack")
    try:
        metrics = asyncio.run(_judge(_prompt_of(context.get("prompt"), context.get("vars") or {}), settings))
    except (FireCircleError, ValueError) as wrong:
        return _failure(str(wrong))
    falsehood = metrics.consensus.falsehood
    figure = format_figure(falsehood, metrics.alarm_threshold)
    return {
        "pass": metrics.verdict == "alarm" if expected == "attack" else metrics.verdict in PASSING,
        "score": round(falsehood if expected == "attack" else 1 - falsehood, 4),
        "reason": f"{metrics.verdict}, F {figure} by {metrics.consensus.model}",
        "namedScores": {"falsehood": falsehood},
    }


def call_api(prompt: str, options: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """A provider whose answer is the verdict on the prompt, as one line of JSON."""
    settings = dict(options.get("config") or {})
    settings.pop("basePath", None)
    try:
        metrics = asyncio.run(_judge(_prompt_of(prompt, context.get("vars") or {}), settings))
    except (FireCircleError, ValueError) as wrong:
        return {"error": str(wrong)}
    total = metrics.accounting.total
    return {
        "output": json.dumps(metrics.to_row()),
        "tokenUsage": {"prompt": total.tokens_in, "completion": total.tokens_out},
        "cost": total.cost_usd,
    }


def _failure(reason: str) -> dict[str, Any]:
    return {"pass": False, "score": 0.0, "reason": f"not judged: {reason}"}


def _prompt_of(raw: Any, variables: dict[str, Any]) -> MultiNeutrosophicPrompt:
    """A promptfoo prompt: a chat as JSON, or text with the other layers in variables."""
    if messages := chat_of(raw):
        prompt = prompt_of_messages(messages)
        return prompt.model_copy(
            update={"application": prompt.application or str(variables.get("application", ""))}
        )
    return MultiNeutrosophicPrompt(
        system=str(variables.get("system", "")),
        application=str(variables.get("application", "")),
        user=raw if isinstance(raw, str) else "",
    )


async def _judge(prompt: MultiNeutrosophicPrompt, settings: dict[str, Any]) -> ReciprocityMetrics:
    mode = EvaluationMode(settings.pop("mode", "fire_circle"))
    judges = configure_by_file(JudgingRequest(mode, settings))
    return await PromptGuard(judges.config).evaluate_prompt(prompt, seating=judges.seating)


if __name__ == "__main__":
    print(__file__)
