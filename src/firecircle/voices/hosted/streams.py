"""An answer that came as a stream of events though nobody asked for one, put together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from firecircle.voices.hosted.usage import stated_usage


def assembled(stream: str) -> Any:
    """An answer that came as a stream of events, as if it had come whole."""
    body: dict[str, Any] = {}
    message: dict[str, Any] = {}
    choice: dict[str, Any] = {"message": message}
    was_ended = any_choice = False
    for event in _events(stream):
        if event == "[DONE]":
            was_ended = True
            continue
        try:
            chunk = json.loads(event)
        except (ValueError, RecursionError):
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


def _events(stream: str) -> Iterable[str]:
    """The data of each event; comments are there to keep the line open."""
    lines: list[str] = []
    for line in (*stream.splitlines(), ""):
        if line.startswith("data:"):
            lines.append(line[5:].strip())
        elif not line.strip() and lines:
            # Some send an event a line and no empty lines between them.
            whole = "\n".join(lines)
            yield from (whole,) if len(lines) == 1 or _is_json(whole) else lines
            lines = []


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


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
    """The answer in a body, of several the first."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return None
    usable = [choice for choice in choices if isinstance(choice, dict)]
    return next(
        (choice for choice in usable if choice.get("index") in (0, None)), usable[0] if usable else None
    )
