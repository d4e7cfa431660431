"""A hosted circle on loopback for the lab: its plans, and answers that follow from the question, so that runs
can be compared."""

from __future__ import annotations

import hashlib
import json
import os

from tests.loopback import Answer, ChatRequest, LoopbackServer, completion

TRIO = ("anthropic/claude-sonnet-4", "qwen/qwen-2.5-72b-instruct", "deepseek/deepseek-r1")


def arm(name: str, kind: str = "", *lines: str) -> str:
    """An arm of this kind, or of the kind it is called after, with further lines."""
    return "\n".join(["[[arms]]", f'name = "{name}"', f'kind = "{kind or name}"', *lines, ""])


CIRCLE = arm("circle", "fire_circle")
FREE = arm(
    "free",
    "fire_circle",
    'models = ["embedded:time", "embedded:layers", "embedded:hidden", "embedded:ngrams"]',
)
"""A circle that asks nobody for money."""


def plan_text(*arms: str, before: str = "", sample: int = 4, circle: str = "") -> str:
    """A plan of the trio on a few of the examples; `before` and `circle` are lines of its own."""
    data = f'[[datasets]]\npath = "examples"\nsample = {sample}\n'
    return f"{before}{data}[circle]\nmodels = {list(TRIO)}\n{circle}{''.join(arms)}"


def customer_of(server: LoopbackServer) -> dict[str, str]:
    """The environment of somebody whose provider is this server."""
    return {
        **os.environ,
        "OPENROUTER_API_KEY": "sk-test",
        "FIRECIRCLE_OPENROUTER_BASE_URL": server.base_url,
    }


def opinion(request: ChatRequest, latency: float = 0.0) -> Answer:
    """The same answer to the same question, whoever asks when."""
    asked = {**request.body, "messages": request.question}
    digest = hashlib.sha256(json.dumps(asked).encode()).digest()
    falsehood = round(digest[0] / 255, 3)
    told = {
        "truth": round(1 - falsehood, 3),
        "indeterminacy": 0.1,
        "falsehood": falsehood,
        "reasoning": "what I see here is this, said at some length so that peers have something to read " * 3,
        "patterns_observed": [
            {"type": "false_authority", "description": "speaks for the operator", "quote": "as we agreed"}
        ],
    }
    fields = request.body["response_format"]["json_schema"]["schema"]["properties"]
    if "argument" in fields:
        told = {
            "argument": f"counsel {digest.hex()[:6]} points at words of the evidence, at some length " * 3
        }
    elif "ranking" in fields:
        letters, first = (
            fields["ranking"]["items"]["enum"],
            digest[0] % len(fields["ranking"]["items"]["enum"]),
        )
        told = {"reasoning": "it quotes what is there", "ranking": [*letters[first:], *letters[:first]]}
    size = len(request.raw) // 4
    usage = {"prompt_tokens": size, "completion_tokens": 120, "cost": round(size * 1e-6, 6)}
    return completion(json.dumps(told), usage=usage, latency=latency)
