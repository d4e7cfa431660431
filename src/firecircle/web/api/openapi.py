"""The OpenAPI description of the API, made from the table of operations and the shapes themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from firecircle.shapes import Shape
from firecircle.web.access import WRITE_HEADER
from firecircle.web.api.operations import OPERATIONS, Operation
from firecircle.web.problems import MEDIA_TYPE, Problem, title_of

BASE = "/api/v1"
READ_REFUSALS = (401, 421, 503)
WRITE_REFUSALS = (401, 403, 421, 503)
Json = dict[str, Any]
STREAMED: Json = {
    "type": "object",
    "description": "One server-sent event: `id` is its number, to be sent back as Last-Event-ID after a"
    " broken connection; `data` is the event as JSON. The last is `closed` and holds the circle's summary.",
    "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
    "required": ["event", "data"],
}


@cache
def openapi() -> Json:
    """The whole description."""
    wanted: list[tuple[type[Shape], JsonSchemaMode]] = [(Problem, "serialization")]
    for one in OPERATIONS:
        if isinstance(one.answer, type):
            wanted.append((one.answer, "serialization"))
        wanted += [(shape, "validation") for shape in (one.query, one.body) if shape]
    references, definitions = models_json_schema(
        list(dict.fromkeys(wanted)), ref_template="#/components/schemas/{model}"
    )
    schemas: Json = definitions["$defs"]
    paths: dict[str, Json] = {}
    for one in OPERATIONS:
        query = references[(one.query, "validation")]["$ref"].rpartition("/")[2] if one.query else None
        paths.setdefault(BASE + one.path, {})[one.method.lower()] = _operation(
            one, references, schemas[query] if query else None
        )
    used_as_query = {references[(one.query, "validation")]["$ref"] for one in OPERATIONS if one.query}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fire Circle",
            "version": version("firecircle"),
            "description": "Several voices judge a layered prompt alone, then talk about what they saw."
            f" Calls that change something need the header {WRITE_HEADER}, which pages carry, or"
            " Authorization: Bearer with the token the server was started with.",
        },
        "paths": paths,
        "components": {
            "schemas": {
                name: shape
                for name, shape in schemas.items()
                if f"#/components/schemas/{name}" not in used_as_query
            },
            "securitySchemes": {
                "write": {"type": "apiKey", "in": "header", "name": WRITE_HEADER},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _operation(one: Operation, references: Any, query: Json | None) -> Json:
    writes = one.method != "GET"
    told: Json = {
        "operationId": one.name,
        "summary": one.summary,
        "parameters": _parameters(one, query),
        "responses": {
            **{str(status): _answer(one, status, references) for status in one.statuses},
            **_refusals(sorted({*(WRITE_REFUSALS if writes else READ_REFUSALS), *one.refusals})),
        },
    }
    if one.body:
        schema = references[(one.body, "validation")]
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if writes:
        told["security"] = [{"write": []}, {"bearer": []}]
    return told


def _parameters(one: Operation, query: Json | None) -> list[Json]:
    parameters: list[Json] = []
    parameters += [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 200},
        }
        for name in re.findall(r"\{(\w+)\}", one.path)
    ]
    if query:
        required = query.get("required", [])
        parameters += [
            {"name": name, "in": "query", "required": name in required, "schema": _without_null(schema)}
            for name, schema in query["properties"].items()
        ]
    return parameters


def _without_null(schema: Json) -> Json:
    """A query can leave a parameter out but has no word for null."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind.get("type") != "null"]
    if len(kinds) == 1:
        return {
            **{name: value for name, value in schema.items() if name not in ("anyOf", "default")},
            **kinds[0],
        }
    return schema


def _answer(one: Operation, status: int, references: Any) -> Json:
    told: Json = {"description": title_of(status)}
    if isinstance(one.answer, str):
        schema = STREAMED if one.answer == "text/event-stream" else {"type": "string"}
        told["content"] = {one.answer: {"schema": schema}}
        if one.name == "export_circle":
            told["content"]["application/json"] = {"schema": {"type": "object"}}
    elif one.answer is not None:
        told["content"] = {"application/json": {"schema": references[(one.answer, "serialization")]}}
    return told


def _refusals(statuses: Sequence[int]) -> Json:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        str(status): {"description": title_of(status), "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }
