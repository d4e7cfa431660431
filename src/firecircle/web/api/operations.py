"""The table of operations: routes and the OpenAPI description are both read from it, and cannot differ."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.requests import Request
from starlette.responses import Response

from firecircle.rotation.selector import FairnessReport
from firecircle.shapes import Shape
from firecircle.store.bank.entries import FullEntry
from firecircle.store.finding import CircleSummary, Page
from firecircle.web.access import WRITE_HEADER
from firecircle.web.api import circles, lookups, runs, shapes
from firecircle.web.problems import MEDIA_TYPE, Problem, title_of

BASE = "/api/v1"
READ_REFUSALS = (401, 403, 421, 503)
WRITE_REFUSALS = (401, 403, 421, 503)
Json = dict[str, Any]
STREAMED: Json = {
    "type": "object",
    "description": "One server-sent event: `id` is its number, to be sent back as Last-Event-ID after a"
    " broken connection; `data` is the event as JSON. The last is `closed` and holds the circle's summary.",
    "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
    "required": ["event", "data"],
}

Handler = Callable[[Request], Response] | Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked."""

    method: str
    path: str
    name: str
    handler: Handler
    answer: type[Shape] | str | None
    """The shape of a good answer, or its media type."""
    statuses: tuple[int, ...] = (200,)
    query: type[Shape] | None = None
    body: type[Shape] | None = None
    refusals: tuple[int, ...] = ()
    """What else can come, beyond what any request may get."""

    @property
    def summary(self) -> str:
        """What it does, in a line."""
        return (self.handler.__doc__ or "").strip().splitlines()[0]


ONE = "/circles/{circle_id}"
BODY = (400, 413, 415, 422)

OPERATIONS = (
    Operation(
        "POST",
        "/evaluate",
        "evaluate",
        circles.evaluate,
        shapes.Begun,
        (200, 202),
        body=shapes.Judging,
        refusals=(*BODY, 429, 502),
    ),
    Operation(
        "POST",
        "/estimate",
        "estimate",
        circles.estimate,
        shapes.Estimate,
        body=shapes.Judging,
        refusals=BODY,
    ),
    Operation(
        "POST",
        "/seats/{token}",
        "answer",
        circles.answer,
        None,
        (204,),
        body=shapes.AnswerIn,
        refusals=(404, *BODY, 409),
    ),
    Operation(
        "GET",
        "/circles",
        "list_circles",
        circles.list_circles,
        Page,
        query=shapes.CircleQuery,
        refusals=(422,),
    ),
    Operation(
        "GET",
        "/counts",
        "count_circles",
        circles.count_circles,
        shapes.Counts,
        query=shapes.CountQuery,
        refusals=(422,),
    ),
    Operation(
        "GET",
        "/live",
        "watch_circles",
        circles.watch_circles,
        shapes.Live,
        query=shapes.LiveQuery,
        refusals=(422,),
    ),
    Operation("GET", ONE, "get_circle", circles.get_circle, shapes.Circle, refusals=(404,)),
    Operation(
        "DELETE",
        ONE,
        "delete_circle",
        circles.delete_circle,
        None,
        (204,),
        refusals=(404, 409),
    ),
    Operation(
        "GET",
        f"{ONE}/events",
        "circle_events",
        circles.circle_events,
        "text/event-stream",
        refusals=(404, 422),
    ),
    Operation(
        "GET",
        f"{ONE}/prompt",
        "get_prompt",
        circles.get_prompt,
        shapes.Asked,
        query=shapes.PromptQuery,
        refusals=(404, 422),
    ),
    Operation(
        "POST",
        f"{ONE}/cancel",
        "cancel_circle",
        circles.cancel_circle,
        CircleSummary,
        (202,),
        refusals=(404, 409),
    ),
    Operation(
        "PUT",
        f"{ONE}/label",
        "label_circle",
        circles.label_circle,
        CircleSummary,
        body=shapes.LabelIn,
        refusals=(404, *BODY),
    ),
    Operation(
        "GET",
        f"{ONE}/export",
        "export_circle",
        circles.export_circle,
        "text/html",
        query=shapes.ExportQuery,
        refusals=(404, 422),
    ),
    Operation(
        "GET",
        "/bank",
        "list_bank",
        lookups.list_bank,
        shapes.BankEntries,
        query=shapes.BankQuery,
        refusals=(422,),
    ),
    Operation("GET", "/bank/{entry_id}", "get_bank_entry", lookups.get_entry, FullEntry, refusals=(404,)),
    Operation(
        "GET",
        "/blindspots",
        "list_blindspots",
        lookups.list_blindspots,
        shapes.BlindspotPage,
        query=shapes.BlindspotQuery,
        refusals=(422,),
    ),
    Operation("GET", "/rotation", "get_fairness", lookups.get_fairness, FairnessReport),
    Operation("GET", "/runs", "list_runs", runs.list_all_runs, shapes.RunLines),
    Operation("GET", "/runs/{run_id}", "get_run", runs.get_run, shapes.RunOut, refusals=(404,)),
)


@cache
def openapi() -> Json:
    """The whole description."""
    shapes_used: list[tuple[type[Shape], JsonSchemaMode]] = [(Problem, "serialization")]
    for operation in OPERATIONS:
        if isinstance(operation.answer, type):
            shapes_used.append((operation.answer, "serialization"))
        shapes_used += [(shape, "validation") for shape in (operation.query, operation.body) if shape]
    references, definitions = models_json_schema(
        list(dict.fromkeys(shapes_used)), ref_template="#/components/schemas/{model}"
    )
    schemas: Json = definitions["$defs"]
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        query = (
            references[(operation.query, "validation")]["$ref"].rpartition("/")[2]
            if operation.query
            else None
        )
        paths.setdefault(BASE + operation.path, {})[operation.method.lower()] = _operation(
            operation, references, schemas[query] if query else None
        )
    used_as_query = {
        references[(operation.query, "validation")]["$ref"] for operation in OPERATIONS if operation.query
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fire Circle",
            "version": version("firecircle"),
            "description": "Find manipulation in prompts for LLMs: several voices judge alone, then discuss."
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


def _operation(operation: Operation, references: Any, query: Json | None) -> Json:
    writes = operation.method != "GET"
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": _parameters(operation, query),
        "responses": {
            **{str(status): _answer(operation, status, references) for status in operation.statuses},
            **_refusals(sorted({*(WRITE_REFUSALS if writes else READ_REFUSALS), *operation.refusals})),
        },
    }
    if operation.body:
        schema = references[(operation.body, "validation")]
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if writes:
        described["security"] = [{"write": []}, {"bearer": []}]
    return described


def _parameters(operation: Operation, query: Json | None) -> list[Json]:
    parameters: list[Json] = []
    parameters += [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 200},
        }
        for name in re.findall(r"\{(\w+)\}", operation.path)
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


def _answer(operation: Operation, status: int, references: Any) -> Json:
    described: Json = {"description": title_of(status)}
    if isinstance(operation.answer, str):
        schema = STREAMED if operation.answer == "text/event-stream" else {"type": "string"}
        described["content"] = {operation.answer: {"schema": schema}}
        if operation.name == "export_circle":
            described["content"]["application/json"] = {"schema": {"type": "object"}}
    elif operation.answer is not None:
        described["content"] = {
            "application/json": {"schema": references[(operation.answer, "serialization")]}
        }
    return described


def _refusals(statuses: Sequence[int]) -> Json:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        str(status): {"description": title_of(status), "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }
