"""A hosted circle on loopback for the lab: answers follow from the question, so that runs can be compared."""

from __future__ import annotations

import hashlib
import json

from tests.loopback import Answer, ChatRequest, completion

TRIO = ("anthropic/claude-sonnet-4", "qwen/qwen-2.5-72b-instruct", "deepseek/deepseek-r1")


def opinion(request: ChatRequest, latency: float = 0.0) -> Answer:
    """The same answer to the same question, whoever asks when."""
    digest = hashlib.sha256(request.raw).digest()
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
