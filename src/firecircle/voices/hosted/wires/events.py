"""Server-sent events, as endpoints send them."""

from __future__ import annotations

import json


def events_in(stream: str) -> list[str]:
    """The data of each event; comments are there to keep the line open."""
    events: list[str] = []
    lines: list[str] = []
    for line in (*stream.splitlines(), ""):
        if line.startswith("data:"):
            lines.append(line[5:].strip())
        elif not line.strip() and lines:
            # Some send an event a line and no empty lines between them.
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
