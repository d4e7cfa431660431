"""A request's parts as shapes: the query and the body, within limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import Request

from firecircle.shapes import Shape
from firecircle.web.problems import RequestError, invalid

LARGEST_BODY = 16 * 1024 * 1024
MOST_PATIENCE = 4 * LARGEST_BODY

Wanted = TypeVar("Wanted", bound=Shape)


def query_as(shape: type[Wanted], request: Request) -> Wanted:
    """The query as a shape. A parameter given twice or unknown is refused."""
    parameters: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in parameters:
            raise RequestError(422, f"{name}: given twice; keep one")
        parameters[name] = value
    return parameters_as(shape, parameters)


def filled_in(request: Request) -> dict[str, str]:
    """The fields of a form in the query that were not left empty."""
    return {name: value.strip() for name, value in request.query_params.items() if value.strip()}


def parameters_as(shape: type[Wanted], parameters: Mapping[str, str]) -> Wanted:
    """Parameters by their names as a shape. One that the shape does not know is refused."""
    try:
        return shape.model_validate_strings(parameters)
    except ValidationError as wrong:
        raise invalid(wrong, "query") from None


async def body_as(shape: type[Wanted], request: Request) -> Wanted:
    """The JSON body as a shape."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(415, "content-type: send application/json")
    received = await _received(request)
    try:
        body = json.loads(received)
    except (ValueError, RecursionError):
        raise RequestError(400, "body: it is not JSON") from None
    try:
        # What came as JSON is read as JSON: a number in quotes is not a number.
        return shape.model_validate_json(received, strict=True)
    except ValidationError as wrong:
        if not isinstance(body, dict):
            raise RequestError(422, "body: it must be an object") from None
        raise invalid(wrong, "body") from None


async def _received(request: Request) -> bytes:
    """The body. One that is too large is taken in to its end and thrown away, or nobody hears the refusal."""
    received, length = bytearray(), 0
    async for part in request.stream():
        length += len(part)
        if length > MOST_PATIENCE:
            break
        if length <= LARGEST_BODY:
            received += part
        else:
            received.clear()
    if length > LARGEST_BODY:
        raise RequestError(413, f"body: at most {LARGEST_BODY:,} bytes", {"connection": "close"})
    return bytes(received)
