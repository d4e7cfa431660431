"""The answer's schema in the subset that strict endpoints take.

OpenAI's strict mode, Gemini and Claude want every object closed and every property required, and turn down
ranges, lengths and patterns. Those are said in words instead, where the model reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

SPOKEN = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matching {}",
    "format": "as {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "default": "{} if nothing else",
}
"""Keywords that go into the description, and how they are said there."""
UNSAYABLE = ("uniqueItems", "minProperties", "maxProperties", "patternProperties", "examples", "$schema")
"""Keywords that are left out: our own schemas do without them."""
NAMED_SCHEMAS = ("properties", "$defs", "definitions")
"""Keywords that hold schemas by name. A property may be called like a keyword."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with closed objects, and with its ranges in words."""
    low, high = schema.get("minimum"), schema.get("maximum")
    is_range = low is not None and high is not None
    spoken = [f"from {low} to {high}"] if is_range else []
    strict: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword not in SPOKEN:
            if keyword not in UNSAYABLE:
                strict[keyword] = _converted(keyword, value)
        elif not (is_range and keyword in ("minimum", "maximum")):
            spoken.append(SPOKEN[keyword].format(value))
    if spoken:
        words = "; ".join(spoken)
        strict["description"] = f"{strict['description']} ({words})" if "description" in strict else words
    if "properties" in strict:
        strict |= {"required": [*strict["properties"]], "additionalProperties": False}
    return strict


def _converted(keyword: str, value: Any) -> Any:
    if keyword in NAMED_SCHEMAS and isinstance(value, Mapping):
        return {name: strict_schema(inner) for name, inner in value.items()}
    if isinstance(value, Mapping) and keyword in ("items", "not"):
        return strict_schema(value)
    if keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [strict_schema(inner) for inner in value]
    return value


_strict_schemas: dict[int, tuple[Mapping[str, Any], dict[str, Any]]] = {}
MOST_SCHEMAS = 32


def strict_schema_once(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same, worked out once for each schema: the circle has a few and sends them with every question."""
    original, strict = _strict_schemas.get(id(schema), (None, {}))
    if original is not schema:
        if len(_strict_schemas) >= MOST_SCHEMAS:
            _strict_schemas.clear()
        strict = strict_schema(schema)
        _strict_schemas[id(schema)] = schema, strict
    return strict


def keywords_in(schema: Mapping[str, Any]) -> frozenset[str]:
    """Every keyword of a schema that it could do without."""
    keywords = set(schema) - {"type", "items", *NAMED_SCHEMAS}
    for name in NAMED_SCHEMAS:
        for inner in schema.get(name, {}).values():
            keywords |= keywords_in(inner)
    if isinstance(schema.get("items"), Mapping):
        keywords |= keywords_in(schema["items"])
    return frozenset(keywords)


def without_keywords(schema: Mapping[str, Any], lacking: Collection[str]) -> dict[str, Any]:
    """The schema less some of its keywords, wherever they stand."""
    lesser: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in lacking:
            continue
        if keyword in NAMED_SCHEMAS:
            lesser[keyword] = {name: without_keywords(inner, lacking) for name, inner in value.items()}
        elif keyword == "items" and isinstance(value, Mapping):
            lesser[keyword] = without_keywords(value, lacking)
        else:
            lesser[keyword] = value
    return lesser
