"""Chat completions, OpenAI's format that most endpoints support."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firecircle.voices.hosted.usage import stated_usage
from firecircle.voices.hosted.wires.format import Body, Wire


def assemble(chunks: Iterable[Any]) -> Body:
    """The complete answer of a stream."""
    body: Body = {}
    message: Body = {}
    choice: Body = {"message": message}
    was_ended = any_choice = False
    for chunk in chunks:
        if chunk == "[DONE]":
            was_ended = True
            continue
        if not isinstance(chunk, dict):
            continue
        if chunk.get("error"):
            body["error"] = chunk["error"]
        if usage := stated_usage(chunk):
            body["usage"] = usage
        body["model"] = chunk.get("model") or body.get("model")
        part = first_choice(chunk)
        if part is None or part.get("index") not in (0, None):
            continue
        any_choice = True
        for name in ("finish_reason", "native_finish_reason", "error", "content_filter_results"):
            if part.get(name):
                choice[name] = part[name]
        whole, delta = part.get("message"), part.get("delta")
        if isinstance(whole, dict) and not isinstance(delta, dict):
            message.update(whole)
        elif isinstance(delta, dict):
            _append(message, delta)
    was_ended = was_ended or "finish_reason" in choice
    if any_choice and not was_ended and not body.get("error"):
        choice["finish_reason"] = "network_error"
    return body | {"choices": [choice]} if any_choice else body


def _append(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        before = message.get(name)
        if isinstance(value, str) and isinstance(before, str):
            message[name] = value if name == "role" else before + value
        elif isinstance(value, list) and isinstance(before, list):
            message[name] = [*before, *value]
        elif isinstance(value, list) and isinstance(before, str):
            message[name] = [{"type": "text", "text": before}, *value] if before else value
        elif isinstance(value, str) and isinstance(before, list):
            message[name] = [*before, {"type": "text", "text": value}]
        elif value is not None:
            message[name] = value


def first_choice(body: dict[str, Any]) -> dict[str, Any] | None:
    """The first answer in a body."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return None
    usable = [choice for choice in choices if isinstance(choice, dict)]
    return next(
        (choice for choice in usable if choice.get("index") in (0, None)), usable[0] if usable else None
    )


WIRE = Wire(
    name="chat",
    path="/chat/completions",
    spelled=lambda request: request,
    told=lambda body: body,
    wrote=lambda body: "choices" in body,
    streams=lambda chunk: "choices" in chunk,
    assembled=assemble,
)
