"""The JSON schema of an answer, for endpoints that can hold a model to one. Reading never relies on it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from firecircle.circle.result import RoundKind
from firecircle.names import OTHER_TYPE, PATTERN_TYPES


@cache
def reply_schema(kind: RoundKind, *, is_chair: bool = False) -> Mapping[str, Any]:
    """What an answer of this round looks like."""
    unit = {"type": "number", "minimum": 0, "maximum": 1}
    fields: dict[str, Any] = {"speaks_for": {"type": "string"}} if is_chair else {}
    fields |= {
        "truth": unit,
        "indeterminacy": unit,
        "falsehood": unit,
        "verdict": {"type": "string", "enum": ["violation", "no_violation", "unsure"]},
        "reasoning": {"type": "string"},
    }
    if kind != "baseline":
        fields["consensus_patterns" if kind == "synthesis" else "patterns_observed"] = {
            "type": "array",
            "items": _closed(
                {
                    "type": {"type": "string", "enum": [*PATTERN_TYPES, OTHER_TYPE]},
                    "description": {"type": "string"},
                    "quote": {"type": "string"},
                    "layer": {"type": "string", "enum": ["system", "application", "user", "turns"]},
                }
            ),
        }
    return _closed(fields)


def _closed(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}
