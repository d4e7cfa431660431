"""How probable a model's verdict word was to be `violation`, from the log-probabilities an endpoint gives."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

CANDIDATES = 20
"""Tokens whose probability is asked for: the most that OpenAI gives."""
LEAST_SHARE = 0.1
"""How probable the three words must be together for their ratio to mean anything."""

_VERDICT = re.compile(r'(?<!\\)"verdict"\s*:\s*"')


def violation_probability(choice: Mapping[str, Any]) -> float | None:
    """Of the verdict in a JSON answer, an `unsure` counting half; None where that cannot be told."""
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        return None
    spelled = [str(token.get("token") or "") for token in tokens]
    beginnings = [*_VERDICT.finditer("".join(spelled))]
    if not beginnings:
        return None
    word_at = beginnings[-1].end()
    ends = [*accumulate(map(len, spelled))]
    place = next((place for place, end in enumerate(ends) if end > word_at), None)
    if place is None:
        return None
    before_word = spelled[place][: word_at - (ends[place] - len(spelled[place]))]
    shares = {"violation": 0.0, "no_violation": 0.0, "unsure": 0.0}
    for token, probability in _candidates(tokens[place]):
        part = token.removeprefix(before_word).rstrip('",} \n')
        if token.startswith(before_word) and part:
            for word in shares:
                if word.startswith(part):
                    shares[word] += probability
    together = sum(shares.values())
    if together < LEAST_SHARE:
        return None
    return (shares["violation"] + shares["unsure"] / 2) / together


def _candidates(token: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """What could have stood in this place, the token itself too where it is not among the likeliest."""
    likeliest = token.get("top_logprobs")
    others = [other for other in likeliest if isinstance(other, dict)] if isinstance(likeliest, list) else []
    listed = {str(other.get("token")): other for other in (token, *others)}
    for text, candidate in listed.items():
        logprob = candidate.get("logprob")
        if isinstance(logprob, int | float) and logprob <= 0:
            yield text, math.exp(logprob)
