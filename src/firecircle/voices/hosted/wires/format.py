"""The interface of a wire format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firecircle.names import WireName

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wire:
    """One format: how to write a chat request in it, and how to read its answers as chat completions."""

    name: WireName
    path: str
    """The path after the base address; `{model}` stands for the model's name."""
    spelled: Callable[[Body], Body]
    told: Callable[[Body], Body]
    wrote: Callable[[Body], bool]
    """Whether a body is an answer in this format."""
    streams: Callable[[Body], bool]
    """Whether an event is part of a stream in this format."""
    assembled: Callable[[list[Body]], Body]
    """The body that a stream of events adds up to, still in this format."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request in this format."""


def text_of(content: Any) -> str:
    """The text of a chat message, which may be in parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content)


def dicts(value: Any) -> list[Body]:
    """The objects in a list; empty for any other value, because an endpoint may send anything."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def limit_of(request: Body) -> int | None:
    """The token limit of a chat request under either of its two names."""
    limit = request.get("max_completion_tokens", request.get("max_tokens"))
    return limit if isinstance(limit, int) else None


def schema_of(request: Body) -> Body | None:
    """The named schema of the answer in a chat request, if any."""
    wanted = request.get("response_format")
    return wanted["json_schema"] if wanted else None


# Server-sent events


def events_in(stream: str) -> list[str]:
    """The data of each event; comments only keep the connection open."""
    events: list[str] = []
    lines: list[str] = []
    for line in (*stream.splitlines(), ""):
        if line.startswith("data:"):
            lines.append(line[5:].strip())
        elif not line.strip() and lines:
            # Some endpoints send one event per line without empty lines between them.
            whole = "\n".join(lines)
            events += [whole] if len(lines) == 1 or _is_json(whole) else lines
            lines = []
    return events


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
