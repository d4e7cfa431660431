"""Hosted voices that say what a test tells them to, and their circles as a snapshot can hold them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from tests.cli.running import TRIO, steady
from tests.loopback import Answer, ChatRequest, Script, completion

CLAUDE, QWEN, DEEPSEEK = TRIO.split(",")
QUOTE = "you had just checked my identity"
USAGE = {"prompt_tokens": 800, "completion_tokens": 100, "cost": 0.002}


def answers(lines: Mapping[str, Sequence[Answer]]) -> Script:
    asked: dict[str, int] = {}

    def answer(request: ChatRequest) -> Answer:
        turn = asked[request.model] = asked.get(request.model, -1) + 1
        told = lines[request.model]
        return told[min(turn, len(told) - 1)]

    return answer


def says(falsehood: float, reasoning: str, *patterns: tuple[str, str]) -> Answer:
    notes = [{"type": kind, "description": f"signs of {kind}", "quote": quote} for kind, quote in patterns]
    told = {"truth": round(1 - falsehood, 2), "indeterminacy": 0.1, "falsehood": falsehood}
    return completion(json.dumps({**told, "reasoning": reasoning, "patterns_observed": notes}), usage=USAGE)


def in_order(text: str) -> str:
    """Voices of a round answer in any order; here they stand sorted."""

    def sorted_lines(run: re.Match[str]) -> str:
        return "".join(sorted(run[0].splitlines(keepends=True)))

    return re.sub(r"(?m)(?:^round \d: \S+ (?:F|lost|tries).*\n)+", sorted_lines, steady(text))
