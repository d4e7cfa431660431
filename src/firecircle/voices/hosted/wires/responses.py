"""OpenAI's Responses format, the only one of its pro and codex models."""

from __future__ import annotations

from typing import Any

from firecircle.voices.hosted.wires.format import Body, Wire, dicts, limit_of, schema_of, text_of

FEWEST_TOKENS = 16


def write_body(request: Body) -> Body:
    """A chat request in Responses format; the provider stores nothing. The format has no seed."""
    system = [text_of(message["content"]) for message in request["messages"] if message["role"] == "system"]
    body: Body = {
        "model": request["model"],
        "input": [
            {"role": message["role"], "content": text_of(message["content"])}
            for message in request["messages"]
            if message["role"] != "system"
        ],
        "store": False,
    }
    if system:
        body["instructions"] = "\n\n".join(system)
    if (limit := limit_of(request)) is not None:
        body["max_output_tokens"] = max(limit, FEWEST_TOKENS)
    if "temperature" in request:
        body["temperature"] = request["temperature"]
    if schema := schema_of(request):
        body["text"] = {"format": {"type": "json_schema", **schema}}
    if effort := request.get("reasoning_effort"):
        body["reasoning"] = {"effort": effort}
    if "top_logprobs" in request:
        body |= {"top_logprobs": request["top_logprobs"], "include": ["message.output_text.logprobs"]}
    return body


def read_body(body: Body) -> Body:
    """A response in the format of chat completions."""
    items = dicts(body.get("output"))
    parts = [part for item in items if item.get("type") == "message" for part in dicts(item.get("content"))]
    spoken = [part for part in parts if part.get("type") != "refusal"]
    message: Body = {"role": "assistant", "content": spoken}
    if refusals := [part.get("refusal") for part in parts if part.get("type") == "refusal"]:
        message["refusal"] = next((said for said in refusals if said), "refused without a word")
    if thoughts := [item for item in items if item.get("type") == "reasoning"]:
        message["reasoning_details"] = [{"text": _thought(item)} for item in thoughts]
    if calls := [item for item in items if item.get("type") == "function_call"]:
        message["tool_calls"] = [
            {"function": {"name": call.get("name"), "arguments": call.get("arguments")}} for call in calls
        ]
    tokens = [token for part in spoken for token in dicts(part.get("logprobs"))]
    choice: Body = {"index": 0, "message": message, "finish_reason": _finish(body)}
    if tokens:
        choice["logprobs"] = {"content": tokens}
    return {
        "model": body.get("model"),
        "choices": [choice],
        "usage": body.get("usage"),
        **({"error": body["error"]} if body.get("error") else {}),
    }


def _thought(item: Body) -> str:
    """A reasoning item's text: its own words, otherwise a summary."""
    for name in ("content", "summary"):
        if words := "".join(str(part.get("text") or "") for part in dicts(item.get(name))):
            return words
    return ""


def _finish(body: Body) -> Any:
    status = body.get("status")
    if status == "incomplete":
        details = body.get("incomplete_details")
        return (details.get("reason") if isinstance(details, dict) else None) or "length"
    return {"failed": "error", "in_progress": "network_error", "queued": "network_error"}.get(
        status if isinstance(status, str) else "", status
    )


def assemble(events: list[Body]) -> Body:
    """The complete response of a stream: its last event has all of it, otherwise the finished items do."""
    body: Body = {"object": "response", "status": "in_progress"}
    items: dict[str, Body] = {}
    for event in events:
        if isinstance(event.get("response"), dict):
            body |= event["response"]
        if event.get("type") == "response.output_item.done" and isinstance(event.get("item"), dict):
            items[str(event.get("output_index"))] = event["item"]
        elif event.get("type") == "error":
            body["error"] = event.get("error") or {
                key: event.get(key) for key in ("message", "code", "param")
            }
    return body if body.get("output") else {**body, "output": [*items.values()]}


WIRE = Wire(
    name="responses",
    path="/responses",
    spelled=write_body,
    told=read_body,
    wrote=lambda body: body.get("object") == "response" or isinstance(body.get("output"), list),
    streams=lambda event: str(event.get("type")).startswith("response."),
    assembled=assemble,
)
