"""Wire formats: writing questions and reading answers, one file per format.

Inside the package every request and answer has the format of chat completions. A wire format translates
requests from it (`spelled`) and answers into it (`told`), so that adaptation, limits, failure kinds and
accounting are written once. Answers are recognised by content: a gateway may answer in another format than
the request's.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from firecircle.voices.hosted.wires import chat, gemini, messages, responses
from firecircle.voices.hosted.wires.format import events_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firecircle.names import WireName
    from firecircle.voices.hosted.wires.format import Wire

WIRES: Mapping[WireName, Wire] = {
    wire.name: wire for wire in (chat.WIRE, messages.WIRE, responses.WIRE, gemini.WIRE)
}
"""The formats of endpoints, by the name of `wire` in `firecircle.toml`."""
NATIVE = tuple(wire for wire in WIRES.values() if wire is not chat.WIRE)


def address_of(wire: Wire, base_url: str, model: str) -> str:
    """The address of a question to a model; `{model}` in a base address stands for the model's name."""
    return (base_url + wire.path).replace("{model}", quote(model, safe="@:"))


def answer_in(raw: bytes) -> Any:
    """An answer's body in the format of chat completions; text if it is neither JSON nor a stream of it."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        text = raw.decode("utf-8", "replace")
        if text.lstrip("\ufeff \r\n").startswith(("data:", "event:", ":", "id:")):
            return _assemble([_chunk(event) for event in events_in(text)])
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            return text
    if isinstance(body, list) and body and isinstance(body[0], dict):
        # Google sends a stream as a list if no events were requested.
        return _assemble(body) if any(wire.streams(body[0]) for wire in NATIVE) else body
    if not isinstance(body, dict) or "choices" in body:
        return body
    return next((wire.told(body) for wire in NATIVE if wire.wrote(body)), body)


def _assemble(chunks: list[Any]) -> Any:
    """The complete answer of a stream that was sent unasked."""
    data = [chunk for chunk in chunks if isinstance(chunk, dict)]
    for wire in NATIVE:
        if any(wire.streams(chunk) for chunk in data[:3]):
            return wire.told(wire.assembled(data))
    return chat.assemble(chunks)


def _chunk(event: str) -> Any:
    try:
        return json.loads(event)
    except (ValueError, RecursionError):
        return event
