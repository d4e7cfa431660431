"""Anthropic's Messages format, with prompt caching, reasoning and refusals."""

from __future__ import annotations

from typing import Any

from firecircle.voices.hosted.usage import read_count
from firecircle.voices.hosted.wires.format import Body, Wire, dicts, limit_of, schema_of, text_of

LONGEST_ANSWER = 4096
"""The format requires a limit; this one is sent if the caller has none."""


def write_body(request: Body) -> Body:
    """A chat request in Messages format, which has no seed and no log-probabilities."""
    system = [message["content"] for message in request["messages"] if message["role"] == "system"]
    body: Body = {
        "model": request["model"],
        "max_tokens": limit_of(request) or LONGEST_ANSWER,
        "messages": [message for message in request["messages"] if message["role"] != "system"],
    }
    if system:
        body["system"] = "\n\n".join(map(text_of, system))
    if "temperature" in request:
        body["temperature"] = min(request["temperature"], 1.0)
    output: Body = {}
    if schema := schema_of(request):
        output["format"] = {"type": "json_schema", "schema": schema["schema"]}
    effort = request.get("reasoning_effort")
    if effort == "none":
        body["thinking"] = {"type": "disabled"}
    elif effort:
        output["effort"] = effort
    return {**body, "output_config": output} if output else body


def read_body(body: Body) -> Body:
    """A message in the format of chat completions."""
    blocks = dicts(body.get("content"))
    spoken = [block for block in blocks if block.get("type") in ("text", "thinking")]
    message: Body = {"role": "assistant", "content": spoken}
    if calls := [block for block in blocks if block.get("type") == "tool_use"]:
        message["tool_calls"] = [
            {"function": {"name": call.get("name"), "arguments": call.get("input")}} for call in calls
        ]
    reason = body.get("stop_reason")
    details = body.get("stop_details")
    if reason == "refusal" and isinstance(details, dict) and isinstance(details.get("explanation"), str):
        message["refusal"] = details["explanation"]
    return {
        "model": body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": _usage(body.get("usage")),
        **({"error": body["error"]} if body.get("error") else {}),
    }


def _usage(usage: Any) -> Body | None:
    """Tokens written to or read from the cache are not part of `input_tokens` here."""
    if not isinstance(usage, dict):
        return None
    fresh = read_count(usage.get("input_tokens"))
    read = read_count(usage.get("cache_read_input_tokens"))
    written = read_count(usage.get("cache_creation_input_tokens"))
    known = [part for part in (fresh, read, written) if part is not None]
    others = {name: value for name, value in usage.items() if name not in OWN_COUNTS}
    return {
        **others,
        "prompt_tokens": sum(known) if fresh is not None else None,
        "completion_tokens": read_count(usage.get("output_tokens")),
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
    }


OWN_COUNTS = frozenset(
    (
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "total_tokens",
    )
)


def assemble(events: list[Body]) -> Body:
    """The complete message of a stream."""
    body: Body = {"type": "message"}
    blocks: dict[Any, Body] = {}
    usage: Body = {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start" and isinstance(event.get("message"), dict):
            body |= event["message"]
            usage |= _counts(event["message"].get("usage"))
        elif kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            blocks[str(event.get("index"))] = dict(event["content_block"])
        elif kind == "content_block_delta" and isinstance(event.get("delta"), dict):
            block = blocks.setdefault(str(event.get("index")), {"type": "text"})
            for name in ("text", "thinking"):
                if isinstance(piece := event["delta"].get(name), str):
                    block[name] = f"{block.get(name) or ''}{piece}"
        elif kind == "message_delta":
            if isinstance(event.get("delta"), dict):
                body |= event["delta"]
            usage |= _counts(event.get("usage"))
        elif kind == "error":
            body["error"] = event.get("error") or {"message": "the stream ended in an error"}
    ended = body.get("stop_reason") or any(event.get("type") == "message_stop" for event in events)
    reason = body.get("stop_reason") if ended else "network_error"
    return {**body, "content": [*blocks.values()], "usage": usage, "stop_reason": reason}


def _counts(usage: Any) -> Body:
    stated = usage.items() if isinstance(usage, dict) else ()
    return {name: value for name, value in stated if value is not None}


EVENTS = (
    "message_start",
    "message_delta",
    "message_stop",
    "content_block_start",
    "content_block_delta",
    "ping",
)

WIRE = Wire(
    name="messages",
    path="/messages",
    spelled=write_body,
    told=read_body,
    wrote=lambda body: body.get("type") == "message" and isinstance(body.get("content"), list),
    streams=lambda event: event.get("type") in EVENTS,
    assembled=assemble,
    headers={"anthropic-version": "2023-06-01"},
)
