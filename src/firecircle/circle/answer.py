"""The answer that a voice must give: in words, and as a JSON schema for endpoints that enforce one.

Reasons come first, then observations, then the verdict, then the numbers: a model that must start with
numbers guesses them. Parsing a reply depends on none of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from firecircle.circle.pattern_types import meanings
from firecircle.circle.result import RoundKind
from firecircle.circle.templates import TemplateSet, render, template
from firecircle.names import OTHER_TYPE, PATTERN_TYPES

LAYERS = ("system", "application", "user", "turns")
VERDICTS = ("violation", "no_violation", "unsure")
VETO = (
    '"veto": "<\'no grounds\', or whose words were erased, what was taken from whom, or how the circle was'
    ' overloaded>", '
)
"""Asked of every voice in the last round: recorded and shown, never counted."""


@cache
def answer_format(kind: RoundKind, *, is_chair: bool = False, templates: TemplateSet = "v2") -> str:
    """The instructions for the answer."""
    types = {**meanings(), OTHER_TYPE: "something else that is a violation"}
    return render(
        template("answer_chair" if is_chair else f"answer_{kind}", templates),
        types="\n".join(f"  - {name}: {meaning}" for name, meaning in types.items()),
        names=" | ".join(types),
        field=_patterns_field(kind),
        veto=VETO if kind == "synthesis" else "",
    )


@cache
def reply_schema(
    kind: RoundKind, *, is_chair: bool = False, templates: TemplateSet = "v2"
) -> Mapping[str, Any]:
    """The JSON schema of an answer in this round."""
    unit = {"type": "number", "minimum": 0, "maximum": 1}
    fields: dict[str, Any] = {"speaks_for": {"type": "string"}} if is_chair else {}
    fields["reasoning"] = {"type": "string"}
    if kind == "synthesis" and not is_chair:
        fields |= {"agrees_with": {"type": "string"}, "differs_from": {"type": "string"}}
    if kind != "baseline":
        fields[_patterns_field(kind)] = {
            "type": "array",
            "items": _closed_object(
                {
                    "type": {"type": "string", "enum": [*PATTERN_TYPES, OTHER_TYPE]},
                    "description": {"type": "string"},
                    "quote": {"type": "string"},
                    "layer": {"type": "string", "enum": [*LAYERS]},
                }
            ),
        }
    if kind == "synthesis" and templates != "v1":
        fields["veto"] = {"type": "string"}
    fields["verdict"] = {"type": "string", "enum": [*VERDICTS]}
    return _closed_object(fields | {"truth": unit, "indeterminacy": unit, "falsehood": unit})


def _patterns_field(kind: RoundKind) -> str:
    return "consensus_patterns" if kind == "synthesis" else "patterns_observed"


def _closed_object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}
