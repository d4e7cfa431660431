"""The answer's schema in the subset that strict endpoints accept.

OpenAI's strict mode, Gemini and Claude require closed objects and all properties, and reject ranges, lengths
and patterns. Those become words in the description, which the model reads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import accumulate
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
"""Keywords that move into the description, and their wording."""
UNSAYABLE = ("uniqueItems", "minProperties", "maxProperties", "patternProperties", "examples", "$schema")
"""Keywords that are dropped: our own schemas do not use them."""
NAMED_SCHEMAS = ("properties", "$defs", "definitions")
"""Keywords with schemas by name. A property may have the same name as a keyword."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with closed objects, and with its ranges in words."""
    low, high = schema.get("minimum"), schema.get("maximum")
    is_range = low is not None and high is not None
    spoken = [f"from {low} to {high}"] if is_range else []
    strict: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword not in SPOKEN:
            if keyword not in UNSAYABLE:
                strict[keyword] = _convert(keyword, value)
        elif not (is_range and keyword in ("minimum", "maximum")):
            spoken.append(SPOKEN[keyword].format(value))
    if spoken:
        words = "; ".join(spoken)
        strict["description"] = f"{strict['description']} ({words})" if "description" in strict else words
    if "properties" in strict:
        strict |= {"required": [*strict["properties"]], "additionalProperties": False}
    return strict


def _convert(keyword: str, value: Any) -> Any:
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
    """Cached by schema: the circle has a few and sends them with every question."""
    original, strict = _strict_schemas.get(id(schema), (None, {}))
    if original is not schema:
        if len(_strict_schemas) >= MOST_SCHEMAS:
            _strict_schemas.clear()
        strict = strict_schema(schema)
        _strict_schemas[id(schema)] = schema, strict
    return strict


def keywords_in(schema: Mapping[str, Any]) -> frozenset[str]:
    """Every optional keyword of a schema."""
    keywords = set(schema) - {"type", "items", *NAMED_SCHEMAS}
    for name in NAMED_SCHEMAS:
        for inner in schema.get(name, {}).values():
            keywords |= keywords_in(inner)
    if isinstance(schema.get("items"), Mapping):
        keywords |= keywords_in(schema["items"])
    return frozenset(keywords)


def without_keywords(schema: Mapping[str, Any], lacking: Collection[str]) -> dict[str, Any]:
    """The schema without some keywords, at any depth."""
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


# The probability that a model's verdict word is `violation`, from log-probabilities

CANDIDATES = 20
"""Requested token alternatives: the most that OpenAI gives."""
LEAST_SHARE = 0.1
"""The least common probability of the three words for their ratio to mean anything."""

_VERDICT = re.compile(r'(?<!\\)"verdict"\s*:\s*"')


def violation_probability(choice: Mapping[str, Any]) -> float | None:
    """The probability of `violation` in a JSON answer, with `unsure` counting half; None if unknown."""
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
    """The alternatives of a token, and the token itself if it is not among them."""
    likeliest = token.get("top_logprobs")
    others = [other for other in likeliest if isinstance(other, dict)] if isinstance(likeliest, list) else []
    listed = {str(other.get("token")): other for other in (token, *others)}
    for text, candidate in listed.items():
        logprob = candidate.get("logprob")
        if isinstance(logprob, int | float) and logprob <= 0:
            yield text, math.exp(logprob)
