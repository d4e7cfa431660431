"""Google's generateContent format."""

from __future__ import annotations

from typing import Any

from firecircle.voices.hosted.usage import read_count
from firecircle.voices.hosted.wires.format import Body, Wire, dicts, limit_of, schema_of, text_of

BUDGETS = {"none": 0, "low": 1024, "medium": 8192, "high": 24576}
"""Reasoning tokens for models before Gemini 3; later ones take a level."""


def write_body(request: Body) -> Body:
    """A chat request in generateContent format; the model's name is in the address."""
    system = [text_of(message["content"]) for message in request["messages"] if message["role"] == "system"]
    body: Body = {
        "contents": [
            {
                "role": "model" if message["role"] == "assistant" else "user",
                "parts": [{"text": text_of(message["content"])}],
            }
            for message in request["messages"]
            if message["role"] != "system"
        ]
    }
    if system:
        body["systemInstruction"] = {"parts": [{"text": "\n\n".join(system)}]}
    settings: Body = {name: request[name] for name in ("temperature", "seed") if name in request}
    if (limit := limit_of(request)) is not None:
        settings["maxOutputTokens"] = limit
    if schema := schema_of(request):
        settings |= {"responseMimeType": "application/json", "responseJsonSchema": schema["schema"]}
    if effort := request.get("reasoning_effort"):
        by_budget = effort == "none" or request["model"].startswith("gemini-2")
        thinking = {"thinkingBudget": BUDGETS[effort]} if by_budget else {"thinkingLevel": effort}
        settings["thinkingConfig"] = thinking
    return {**body, "generationConfig": settings} if settings else body


def read_body(body: Body) -> Body:
    """A generateContent answer in the format of chat completions."""
    answered: Body = {"model": body.get("modelVersion"), "usage": _usage(body.get("usageMetadata"))}
    if body.get("error"):
        answered["error"] = body["error"]
    feedback = body.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        words = feedback.get("blockReasonMessage") or f"the prompt was blocked ({feedback['blockReason']})"
        return {**answered, "choices": [{"message": {"refusal": str(words)}, "finish_reason": "safety"}]}
    candidates = dicts(body.get("candidates"))
    if not candidates:
        return answered
    candidate = candidates[0]
    content = candidate.get("content")
    parts = dicts(content.get("parts")) if isinstance(content, dict) else []
    message: Body = {
        "role": "assistant",
        "content": [
            {"type": "thinking" if part.get("thought") is True else "text", "text": part["text"]}
            for part in parts
            if isinstance(part.get("text"), str)
        ],
    }
    if calls := [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict)]:
        message["tool_calls"] = [
            {"function": {"name": call.get("name"), "arguments": call.get("args")}} for call in calls
        ]
    reason = candidate.get("finishReason")
    return {**answered, "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def _usage(usage: Any) -> Body | None:
    """Reasoning is charged like the answer, and counted separately here."""
    if not isinstance(usage, dict):
        return None
    asked, of_tools = (
        read_count(usage.get("promptTokenCount")),
        read_count(usage.get("toolUsePromptTokenCount")),
    )
    spoken, thought = (
        read_count(usage.get("candidatesTokenCount")),
        read_count(usage.get("thoughtsTokenCount")),
    )
    own = ("TokenCount", "TokensDetails")
    others = {name: value for name, value in usage.items() if not name.endswith(own)}
    return {
        **others,
        "prompt_tokens": asked + (of_tools or 0) if asked is not None else None,
        "completion_tokens": (spoken or 0) + (thought or 0) if asked is not None else None,
        "prompt_tokens_details": {"cached_tokens": read_count(usage.get("cachedContentTokenCount"))},
    }


def assemble(chunks: list[Body]) -> Body:
    """The complete answer of a stream: all parts in order, with the last counts and the end."""
    body: Body = {}
    parts: list[Body] = []
    candidate: Body = {}
    for chunk in chunks:
        body |= {name: value for name, value in chunk.items() if name not in ("candidates", "usageMetadata")}
        if isinstance(usage := chunk.get("usageMetadata"), dict):
            body["usageMetadata"] = {**body.get("usageMetadata", {}), **usage}
        for piece in dicts(chunk.get("candidates"))[:1]:
            content = piece.get("content")
            parts += dicts(content.get("parts")) if isinstance(content, dict) else []
            candidate |= piece
    if candidate:
        ended = candidate.get("finishReason") or "network_error"
        body["candidates"] = [{**candidate, "content": {"parts": parts}, "finishReason": ended}]
    return body


WIRE = Wire(
    name="gemini",
    path="/models/{model}:generateContent",
    spelled=write_body,
    told=read_body,
    wrote=lambda body: "candidates" in body or "promptFeedback" in body,
    streams=lambda chunk: "candidates" in chunk or "promptFeedback" in chunk,
    assembled=assemble,
)
