"""Read a successful answer: the text, the reasoning, how it ended and its usage.

An answer is recognised by its content, not by its header: JSON in any wire format under any content type, and
streams that were sent unasked.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from firecircle.circle.voice import Reply, Usage
from firecircle.voices.hosted.chat import violation_probability
from firecircle.voices.hosted.error_bodies import MESSAGES, as_text, is_page
from firecircle.voices.hosted.usage import usage_if_any
from firecircle.voices.hosted.waits import Setback, setback_of
from firecircle.voices.hosted.wires import answer_in
from firecircle.voices.hosted.wires.chat import first_choice
from firecircle.voices.hosted.wires.format import dicts

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
"""Prefixes of finish reasons that mean: a filter, not the model, ended the answer."""
BROKEN_OFF = frozenset(
    {"error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled", "timeout"}
)
"""Finish reasons that mean: something other than the model ended the answer."""
OUT_OF_ROOM = re.compile(
    r"could not finish .{0,60}(max_tokens|output limit)|\b(token|length) limit (was )?reached", re.IGNORECASE
)
"""Errors that mean: the model reached its token limit."""
LONGEST_NAME = 200


def reply_in(answer: HttpAnswer, attempts: int) -> Reply:
    """The reply in an endpoint's answer; raises a `Setback` if there is none."""
    body = answer_in(answer.body)
    usage = _stated_usage(body, answer)
    if not 200 <= answer.status < 300:
        setback = setback_of(body, answer, usage)
        if OUT_OF_ROOM.search(setback.message):
            return Reply("", None, setback.usage or Usage(), attempts, cut_short=True)
        raise setback
    if isinstance(body, list) and body and isinstance(body[0], dict) and body[0].get("error"):
        raise setback_of(body, answer)
    if not isinstance(body, dict):
        raise _not_an_answer(body, answer)
    if body.get("error"):
        setback = setback_of(body, answer, usage)
        if OUT_OF_ROOM.search(setback.message):
            words = _message(first_choice(body) or {}) or {}
            said = _words_said(words.get("content"))
            return Reply(said, _trace(words), usage or Usage(), attempts, cut_short=True)
        raise setback
    choice = first_choice(body)
    if choice is None:
        if _is_complaint(body):
            raise setback_of(body, answer, usage)
        raise _broken_answer("the answer has no choices", usage)
    message = _message(choice)
    native = str(choice.get("native_finish_reason") or "").lower()
    reason = str(choice.get("finish_reason") or native).lower()
    _require_consent(body, choice, message or {}, native if native.startswith(FILTERED) else reason, usage)
    if choice.get("error"):
        setback = setback_of(choice, answer, usage)
        setback.unmetered = usage is None
        raise setback
    if reason in BROKEN_OFF or reason.startswith("malformed"):
        raise _broken_answer(f"the endpoint broke the answer off (finish_reason {reason})", usage)
    if message is None:
        raise _broken_answer("the answer has no message", usage)
    text, trace = _words_said(message.get("content")) or _judgement_in_call(message), _trace(message)
    if not (reason or text or trace or message.get("tool_calls")):
        raise _broken_answer("the answer is empty: no text, and no reason why it ended", usage)
    return Reply(
        text,
        trace,
        usage or Usage(),
        attempts,
        # Some endpoints give no reason. The body is complete, otherwise it could not have been parsed.
        finished=reason in FINISHED or not reason,
        cut_short=reason in CUT_SHORT,
        answered_by=_name_of_model(body),
        violation_probability=violation_probability(choice),
    )


def _stated_usage(body: Any, answer: HttpAnswer) -> Usage | None:
    """The usage in the body; a gateway may state the cost in a header."""
    usage = usage_if_any(body)
    stated = answer.headers.get("x-litellm-response-cost", "")
    if usage is None or usage.cost_usd is not None or not A_COST.fullmatch(stated):
        return usage
    return usage.at_a_cost(float(stated))


A_COST = re.compile(r"\d{1,9}(\.\d{1,20})?(e-?\d{1,2})?", re.IGNORECASE)


def holds_logprobs(answer: HttpAnswer) -> bool:
    """Whether an answer has the log-probability of at least one of its tokens."""
    try:
        tokens = answer_in(answer.body)["choices"][0]["logprobs"]["content"]
        return answer.status == 200 and isinstance(tokens[0]["logprob"], int | float)
    except (ValueError, RecursionError, LookupError, TypeError):
        return False


def _name_of_model(body: dict[str, Any]) -> str | None:
    name = body.get("model")
    return name[:LONGEST_NAME] if isinstance(name, str) and name else None


def _broken_answer(message: str, usage: Usage | None) -> Setback:
    """The error for a broken answer; a retry may work."""
    return Setback("http_error", message, worth_retrying=True, usage=usage, unmetered=usage is None)


def _not_an_answer(body: Any, answer: HttpAnswer) -> Setback:
    if isinstance(body, str) and not body.strip():
        return _broken_answer("the answer is empty", None)
    if isinstance(body, str) and is_page(body):
        return Setback("http_error", f"answered with a web page, not JSON: {as_text(body)}")
    shown = body if isinstance(body, str) else json.dumps(body)
    kind = answer.headers.get("content-type", "")
    named = "" if not kind or "json" in kind else f" but {kind}"
    return Setback("http_error", f"the answer is not a JSON object{named}: {shown}")


def _message(choice: dict[str, Any]) -> dict[str, Any] | None:
    message = choice.get("message")
    if isinstance(message, dict):
        return message
    text = choice.get("text")
    return {"content": text} if isinstance(text, str) else None


def _is_complaint(body: dict[str, Any]) -> bool:
    """Whether a body without an answer has an error, under any name."""
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
    return next((str(part["refusal"]) for part in dicts(content) if part.get("refusal")), "")


def _filter_hits(holder: dict[str, Any]) -> Iterable[str]:
    holders = [holder, *dicts(holder.get("prompt_filter_results"))]
    results = [entry.get("content_filter_results") for entry in holders]
    for result in results:
        for category, verdict in result.items() if isinstance(result, dict) else ():
            if isinstance(verdict, dict) and verdict.get("filtered"):
                severity = verdict.get("severity")
                yield f"{category} {severity}" if severity else str(category)


SPOKEN = frozenset(("role", "content", "refusal", "tool_calls"))
"""The fields of a message without reasoning."""
THOUGHTS = ("thinking", "reasoning", "thought")
"""Prefixes of the types of reasoning parts."""


def _words_said(content: Any) -> str:
    if isinstance(content, dict):
        # Cloudflare returns an answer with a schema as the object itself.
        return _text_in(content) or (json.dumps(content) if content else "")
    if not isinstance(content, list):
        return _text_in(content)
    return "".join(_text_in(part) for part in content if not _is_thought(part))


JUDGEMENT = ("falsehood", "verdict")
"""Fields of a judgement, which arguments of a tool do not have."""


def _judgement_in_call(message: dict[str, Any]) -> str:
    """A judgement that a model gave as the arguments of a tool instead of as text."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        given = function.get("arguments") if isinstance(function, dict) else None
        try:
            arguments = json.loads(given) if isinstance(given, str) else given
        except (ValueError, RecursionError):
            continue
        if isinstance(arguments, dict) and any(name in arguments for name in JUDGEMENT):
            return json.dumps(arguments)
    return ""


def _trace(message: dict[str, Any]) -> str | None:
    """The model's reasoning before the answer, wherever the endpoint puts it."""
    content = message.get("content")
    if isinstance(content, str) and message.keys() <= SPOKEN:
        return None
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
    """The text of a part, which may itself have parts."""
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
