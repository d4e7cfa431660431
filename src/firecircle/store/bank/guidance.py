"""What a voice is told about a pattern: our own words, chosen by what the bank knows, never taken from it.

Descriptions are written by voices that have just read an attack, and may carry its words on; quotes are the
attack. So neither reaches a question. They only select which of the texts in `guidance.toml` is meant.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from firecircle.circle.pattern_types import MEANINGS
from firecircle.names import PATTERN_TYPES, PatternType
from firecircle.store.bank.likeness import likeness

GUIDED_TYPES = frozenset(PATTERN_TYPES)
"""For what fits none of the types we have no words of our own, so nothing is said of it."""
LIKE_ENOUGH = 0.3
"""Likeness from which on a description is taken for one of the kinds of its type."""


def guidance_text(pattern_type: str, description: str = "") -> str:
    """Our words for a pattern: of the kind its description is like, else of its type."""
    texts = _texts()[pattern_type]
    of_the_type = {"like": MEANINGS[PatternType(pattern_type)], "look": texts["look"]}
    nearest = max(
        (of_the_type, *texts["kinds"]), key=lambda kind: likeness(kind["like"], description, pattern_type)
    )
    near = likeness(nearest["like"], description, pattern_type)
    return str(nearest["look"] if near >= LIKE_ENOUGH else texts["look"])


def judge_text(pattern_type: str, layer: str, description: str = "") -> str:
    """What the question to a judge could say in addition to find such a pattern in that layer."""
    relation = _texts()["layer"].get(layer, "")
    return " ".join(part for part in (guidance_text(pattern_type, description), relation) if part)


def author_text(pattern_type: str) -> str:
    """What a system prompt could say to the assistant against such a pattern."""
    return str(_texts()[pattern_type]["author"])


@cache
def _texts() -> dict[str, Any]:
    place = resources.files("firecircle.store.bank").joinpath("guidance.toml")
    return tomllib.loads(place.read_text("utf-8"))
