"""What comes back in a good answer: the words, the thoughts, how it ended and what it took.

An answer is read by what it holds, not by what its header calls it: JSON under any name, and a stream that
nobody asked for put together again.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from firecircle.circle.voice import Reply, Usage
from firecircle.voices.hosted.complaints import MESSAGES, Setback, as_text, is_page, setback_of
from firecircle.voices.hosted.verdict_word import violation_probability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from firecircle.voices.hosted.connections import HttpAnswer

FINISHED = frozenset(
    {"stop", "eos", "eos_token", "end_turn", "stop_sequence", "end", "complete", "completed"}
)
CUT_SHORT = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
)
FILTERED = (
    "content_filter",
    "content_policy",
    "content_block",
    "data_inspection",
    "refusal",
    "safety",
    "sensitive",
    "prohibited",
    "blocklist",
    "recitation",
    "spii",
    "guardrail",
    "moderation",
    "error_toxic",
)
"""How finish reasons begin by which endpoints say that a filter, not the model, ended the answer."""
BROKEN_OFF = frozenset(
    {"error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled", "timeout"}
)
"""Finish reasons that mean: something other than the model ended the answer."""
OUT_OF_ROOM = re.compile(r"could not finish .{0,60}(max_tokens|output limit)", re.IGNORECASE)
"""How OpenAI says by a 400 that a model thought until its limit."""
LONGEST_NAME = 200
USD_A_TICK = 1e-10
"""How xAI counts money."""


def reply_in(answer: HttpAnswer, attempts: int) -> Reply:
    """The reply in an endpoint's answer; a `Setback` when there is none."""
    body = _parsed(answer.body)
    if not 200 <= answer.status < 300:
        setback = setback_of(body, answer, _usage_if_any(body))
        if OUT_OF_ROOM.search(setback.message):
            return Reply("", None, setback.usage or Usage(), attempts, cut_short=True)
        raise setback
    if isinstance(body, list) and body and isinstance(body[0], dict) and body[0].get("error"):
        raise setback_of(body, answer)
    if not isinstance(body, dict):
        raise _not_an_answer(body, answer)
    usage = _usage_if_any(body)
    if body.get("error"):
        raise setback_of(body, answer, usage)
    choice = _choice(body)
    if choice is None:
        if _is_complaint(body):
            raise setback_of(body, answer, usage)
        raise _broken("the answer holds no choices", usage)
    message = _message(choice)
    native = str(choice.get("native_finish_reason") or "").lower()
    reason = str(choice.get("finish_reason") or native).lower()
    _require_consent(body, choice, message or {}, native if native.startswith(FILTERED) else reason, usage)
    if choice.get("error"):
        setback = setback_of(choice, answer, usage)
        setback.unmetered = usage is None
        raise setback
    if reason in BROKEN_OFF or reason.startswith("malformed"):
        raise _broken(f"the endpoint broke the answer off (finish_reason {reason})", usage)
    if message is None:
        raise _broken("the answer holds no message", usage)
    text, trace = _words_said(message.get("content")), _trace(message)
    if not (reason or text or trace or message.get("tool_calls")):
        raise _broken("the answer is empty: no text, and no reason why it ended", usage)
    return Reply(
        text,
        trace,
        usage or Usage(),
        attempts,
        # Some say nothing of the end. The body is whole, or it could not have been read.
        finished=reason in FINISHED or not reason,
        cut_short=reason in CUT_SHORT,
        answered_by=_name_of_model(body),
        violation_probability=violation_probability(choice),
    )


def holds_logprobs(answer: HttpAnswer) -> bool:
    """Whether an answer carries the log-probability of at least one of its tokens."""
    try:
        body = json.loads(answer.body)
        tokens = body["choices"][0]["logprobs"]["content"]
        return answer.status == 200 and isinstance(tokens[0]["logprob"], int | float)
    except (ValueError, RecursionError, LookupError, TypeError):
        return False


def _name_of_model(body: dict[str, Any]) -> str | None:
    name = body.get("model")
    return name[:LONGEST_NAME] if isinstance(name, str) and name else None


def _broken(message: str, usage: Usage | None) -> Setback:
    """An answer that is none, and may be one the next time."""
    return Setback("http_error", message, worth_retrying=True, usage=usage, unmetered=usage is None)


def _not_an_answer(body: Any, answer: HttpAnswer) -> Setback:
    if isinstance(body, str) and not body.strip():
        return _broken("the answer is empty", None)
    if isinstance(body, str) and is_page(body):
        return Setback("http_error", f"answered with a web page, not JSON: {as_text(body)}")
    shown = body if isinstance(body, str) else json.dumps(body)
    kind = answer.headers.get("content-type", "")
    named = "" if not kind or "json" in kind else f" but {kind}"
    return Setback("http_error", f"the answer is not a JSON object{named}: {shown}")


def _parsed(raw: bytes) -> Any:
    """The body as data: JSON, or a stream of it put together; else as text."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        text = raw.decode("utf-8", "replace")
    if text.lstrip("\ufeff \r\n").startswith(("data:", "event:", ":", "id:")):
        return _assembled(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _assembled(stream: str) -> Any:
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
        if usage := _stated_usage(chunk):
            body["usage"] = usage
        body["model"] = chunk.get("model") or body.get("model")
        part = _choice(chunk)
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


def _choice(body: dict[str, Any]) -> dict[str, Any] | None:
    choices = body.get("choices")
    if not isinstance(choices, list):
        return None
    usable = [choice for choice in choices if isinstance(choice, dict)]
    return next(
        (choice for choice in usable if choice.get("index") in (0, None)), usable[0] if usable else None
    )


def _message(choice: dict[str, Any]) -> dict[str, Any] | None:
    message = choice.get("message")
    if isinstance(message, dict):
        return message
    text = choice.get("text")
    return {"content": text} if isinstance(text, str) else None


def _is_complaint(body: dict[str, Any]) -> bool:
    """Whether a body without an answer says why, under whatever name."""
    outcome = body.get("base_resp")
    if isinstance(outcome, dict):
        return bool(outcome.get("status_code"))
    return any(body.get(name) for name in (*MESSAGES, "errors"))


def _require_consent(
    body: dict[str, Any], choice: dict[str, Any], message: dict[str, Any], reason: str, usage: Usage | None
) -> None:
    refusal = message.get("refusal") or _refusal_part(message.get("content"))
    if isinstance(refusal, str) and refusal.strip():
        raise Setback("refused", refusal, usage=usage, unmetered=usage is None)
    if reason.startswith(FILTERED):
        hits = ", ".join(dict.fromkeys((*_filter_hits(choice), *_filter_hits(body))))
        stopped = f"stopped by the endpoint's filter (finish_reason {reason}){f': {hits}' if hits else ''}"
        raise Setback("refused", stopped, usage=usage, unmetered=usage is None)


def _refusal_part(content: Any) -> str:
    parts = content if isinstance(content, list) else ()
    return next(
        (str(part.get("refusal")) for part in parts if isinstance(part, dict) and part.get("refusal")), ""
    )


def _filter_hits(holder: dict[str, Any]) -> Iterable[str]:
    """The categories that a filter of Azure's says it found, with how bad it thinks they are."""
    listed = holder.get("prompt_filter_results")
    results = [holder.get("content_filter_results")]
    results += [entry.get("content_filter_results") for entry in listed or () if isinstance(entry, dict)]
    for result in results:
        for category, found in result.items() if isinstance(result, dict) else ():
            if isinstance(found, dict) and found.get("filtered"):
                severity = found.get("severity")
                yield f"{category} {severity}" if severity else str(category)


THOUGHTS = ("thinking", "reasoning", "thought")
"""How the type of a part begins that the model did not say but think."""


def _words_said(content: Any) -> str:
    """A message's text, given whole or in parts; what was thought on the way is no part of it."""
    if not isinstance(content, list):
        return _text_in(content)
    return "".join(_text_in(part) for part in content if not _is_thought(part))


def _trace(message: dict[str, Any]) -> str | None:
    """What the model thought before it spoke, wherever the endpoint puts it."""
    content = message.get("content")
    places = (
        message.get("reasoning"),
        message.get("reasoning_content"),
        message.get("reasoning_details"),
        message.get("thinking"),
        [part for part in content if _is_thought(part)] if isinstance(content, list) else None,
    )
    return next((trace for place in places if (trace := _text_in(place))), None)


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and str(part.get("type")).startswith(THOUGHTS)


def _text_in(part: Any, depth: int = 0) -> str:
    """The text of a part, which may itself be in parts."""
    if isinstance(part, str):
        return part
    if depth > 3:
        return ""
    if isinstance(part, list):
        return "".join(_text_in(piece, depth + 1) for piece in part)
    if isinstance(part, dict):
        pieces = (part.get(name) for name in ("text", "thinking", "summary", "content"))
        return next((text for piece in pieces if (text := _text_in(piece, depth + 1))), "")
    return ""


def _stated_usage(body: Any) -> dict[str, Any] | None:
    if not isinstance(body, dict):
        return None
    groq = body.get("x_groq")
    for holder in (body, groq if isinstance(groq, dict) else {}):
        usage = holder.get("usage")
        if isinstance(usage, dict) and usage:
            return usage
    return None


def _usage_if_any(body: Any) -> Usage | None:
    """What the endpoint says it took, if it says anything."""
    stated = _stated_usage(body)
    if stated is None:
        return None
    usage = usage_in(stated)
    return None if usage == Usage() else usage


def usage_in(usage: dict[str, Any]) -> Usage:
    """Tokens and money in any spelling."""
    asked = _first(usage, "prompt_tokens", "input_tokens")
    answered = _first(usage, "completion_tokens", "output_tokens")
    into, out_of = _details(usage, "prompt", "input"), _details(usage, "completion", "output")
    if asked is not None and answered is not None:
        asked, answered = _with_the_rest(asked, answered, usage, into, out_of)
    cached = [
        count
        for count in (
            _count(into.get("cached_tokens")),
            *(_count(usage.get(name)) for name in CACHED),
        )
        if count is not None
    ]
    return Usage(
        tokens_in=asked,
        tokens_cached=max(cached, default=None),
        tokens_out=answered,
        cost_usd=_cost(usage),
    )


OF_THE_QUESTION = (
    "audio_tokens",
    "image_tokens",
    "video_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
"""Parts of the question that some count in the total alone."""
CACHED = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens", "cache_read_input_tokens")


def _with_the_rest(
    asked: int, answered: int, usage: dict[str, Any], into: dict[str, Any], out_of: dict[str, Any]
) -> tuple[int, int]:
    """Question and answer, with the thoughts that only the total shows.

    Google and xAI do not count thinking among the tokens of the answer, though it is paid for as such.
    """
    thought = _first(out_of, "reasoning_tokens") or _first(usage, "reasoning_tokens") or 0
    total = _count(usage.get("total_tokens"))
    if total is None:
        return asked, answered + thought if thought > answered else answered
    rest = total - asked - answered
    if rest <= 0:
        return asked, answered
    of_question = {_count(holder.get(name)) for holder in (into, usage) for name in OF_THE_QUESTION}
    return asked, answered + (0 if rest in of_question and rest != thought else rest)


def _details(usage: dict[str, Any], *sides: str) -> dict[str, Any]:
    for side in sides:
        details = usage.get(f"{side}_tokens_details")
        if isinstance(details, dict):
            return details
    return {}


def _first(holder: dict[str, Any], *names: str) -> int | None:
    return next((count for name in names if (count := _count(holder.get(name))) is not None), None)


def _count(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _cost(usage: dict[str, Any]) -> float | None:
    """US dollars: what the router took, and on a key of one's own what the host behind it takes."""
    cost = usage.get("cost")
    price = _price(cost.get("total_cost") if isinstance(cost, dict) else cost)
    if price is None:
        ticks = _price(usage.get("cost_in_usd_ticks"))
        price = _price(usage.get("estimated_cost")) if ticks is None else ticks * USD_A_TICK
    details = usage.get("cost_details")
    if usage.get("is_byok") is True and isinstance(details, dict):
        upstream = _price(details.get("upstream_inference_cost"))
        price = price if upstream is None else (price or 0.0) + upstream
    return price


def _price(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None
