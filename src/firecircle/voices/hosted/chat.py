"""The chat-completions format: what is sent, what comes back, and what an endpoint says when it will not."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from firecircle.circle.voice import Reply, Turn, Usage
from firecircle.voices.control_tokens import as_plain_text

if TYPE_CHECKING:
    from firecircle.errors import FailureKind
    from firecircle.voices.hosted.connections import HttpAnswer
    from firecircle.voices.hosted.providers import Provider

MAX_MESSAGE_CHARS = 300
MAX_MESSAGE_SCANNED = 20_000
"""An answer that should have been short may be megabytes long."""
TURNED_DOWN = (400, 404, 422)
"""How endpoints answer a request that holds a field they do not know."""
DISPENSABLE = ("max_tokens", "temperature", "seed", "random_seed", "response_format")
UNPAID, TIMED_OUT, TOO_MANY, SERVER_FAULT = 402, 408, 429, 500
FILTERED = ("content_filter", "content_policy_violation", "data_inspection_failed", "refusal", "safety")
"""Codes and finish reasons by which endpoints say that a filter, not the model, answered."""


class Setback(Exception):  # noqa: N818 - one attempt's end; whether it becomes an error is not its to say
    """One attempt did not yield a reply."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        worth_retrying: bool = False,
        retry_after: float | None = None,
        turned_down: str | None = None,
        status: int = 0,
        of_one_model: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.worth_retrying = worth_retrying
        self.retry_after = retry_after
        """How many seconds the endpoint asked to wait."""
        self.turned_down = turned_down
        """The field of the request that this model may be unable to take."""
        self.status = status
        """The HTTP status, wherever the endpoint put it."""
        self.of_one_model = of_one_model
        """Whether a router passes on what the host of this one model said."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A turn as it is put to one model."""

    turn: Turn
    name: str
    """What the provider calls the model."""
    provider: Provider
    dropped: frozenset[str] = frozenset()
    """Fields that this model was found not to take."""

    @property
    def sends_schema(self) -> bool:
        """Whether the endpoint is asked to hold the model to the answer's schema."""
        possible = self.turn.reply_schema is not None and self.provider.structured_output == "auto"
        return possible and "response_format" not in self.dropped

    def body(self) -> bytes:
        """The request, ready to be sent."""
        turn = self.turn
        spelled = as_plain_text if self.provider.reads_control_tokens else str
        fields: dict[str, Any] = {
            "model": self.name,
            "messages": [
                {"role": message.role, "content": spelled(message.content)} for message in turn.messages
            ],
            "max_tokens": turn.max_tokens,
        }
        if turn.temperature is not None:
            fields["temperature"] = turn.temperature
        if turn.seed is not None:
            fields[self.provider.seed_field] = turn.seed
        if self.sends_schema:
            schema = {"name": "evaluation", "schema": turn.reply_schema}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
        if "max_tokens" in self.dropped:
            # OpenAI's reasoning models know the limit by this name only; many servers know only the other.
            fields["max_completion_tokens"] = turn.max_tokens
        for field in self.dropped:
            fields.pop(field, None)
        return json.dumps(fields, default=dict).encode()

    def lacking(self, field: str | None) -> ChatRequest | None:
        """The request without a field it can do without; None when that would change nothing."""
        if field is None or field in self.dropped:
            return None
        if field == "response_format" and not self.sends_schema:
            return None
        return replace(self, dropped=self.dropped | {field})


def reply_in(answer: HttpAnswer, attempts: int) -> Reply:
    """The reply in an endpoint's answer; a `Setback` when there is none."""
    if not 200 <= answer.status < 300:
        raise _complaint(_json_or_text(answer.body), answer.status, answer)
    if answer.content_type and "json" not in answer.content_type:
        raise Setback("http_error", f"answered {answer.content_type}, not JSON: {_text(answer.body)}")
    body = _json_or_text(answer.body)
    if not isinstance(body, dict):
        raise Setback("http_error", f"the answer is not a JSON object: {_text(answer.body)}")
    if body.get("error"):
        raise _complaint(body, answer.status, answer)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise Setback("http_error", "the answer holds no choices")
    if choice.get("error"):
        raise _complaint(choice, answer.status, answer)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Setback("http_error", "the answer holds no message")
    _require_consent(choice, message)
    return Reply(
        _words_said(message.get("content")),
        _trace(message),
        _usage(body.get("usage")),
        attempts,
        finished=choice.get("finish_reason") == "stop",
        cut_short=choice.get("finish_reason") in ("length", "max_tokens"),
        answered_by=body["model"][:200] if isinstance(body.get("model"), str) and body["model"] else None,
    )


def _require_consent(choice: dict[str, Any], message: dict[str, Any]) -> None:
    if refusal := message.get("refusal"):
        raise Setback("refused", str(refusal))
    reason = str(choice.get("finish_reason") or "").lower()
    if reason.startswith(FILTERED):
        raise Setback("refused", f"stopped by the endpoint's filter (finish_reason {reason})")


THOUGHTS = ("thinking", "reasoning")
"""How the type of a part begins that the model did not say but think."""


def _words_said(content: Any) -> str:
    """A message's text, given whole or in parts; what was thought on the way is no part of it."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "".join(_text_in(part) for part in content if not _is_thought(part))


def _trace(message: dict[str, Any]) -> str | None:
    """What the model thought before it spoke, wherever the endpoint puts it."""
    content = message.get("content")
    places = (
        message.get("reasoning"),
        message.get("reasoning_content"),
        message.get("reasoning_details"),
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


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        tokens_in=_count(usage.get("prompt_tokens")),
        tokens_cached=_count(cached),
        tokens_out=_count(usage.get("completion_tokens")),
        cost_usd=_price(usage.get("cost")),
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _price(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _complaint(body: Any, status: int, answer: HttpAnswer) -> Setback:
    """What an endpoint complained of, in its own words: each has its own way of wrapping them."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error") or body if isinstance(body, dict) else body
    code, param = "", None
    if isinstance(error, dict):
        code, param = str(error.get("code") or error.get("type") or "").lower(), error.get("param")
        message = _words(error)
    else:
        message = str(error)
    if status < 300:
        status = int(code) if code.isdecimal() and len(code) == 3 else TOO_MANY if "rate_limit" in code else 0
    shown = f"{message} (HTTP {status})" if message and status else message or f"HTTP {status}"
    if code.startswith(FILTERED):
        return Setback("refused", shown)
    if status == TOO_MANY:
        # A spent quota comes as 429 too, but no waiting brings it back.
        waiting_helps = code != "insufficient_quota"
        return Setback(
            "rate_limited",
            shown,
            worth_retrying=waiting_helps,
            retry_after=_seconds_until(answer.retry_after),
            status=status if waiting_helps else UNPAID,
            of_one_model=_is_passed_on(error),
        )
    if status == TIMED_OUT or status >= SERVER_FAULT:
        wait = _seconds_until(answer.retry_after)
        return Setback("http_error", shown, worth_retrying=True, retry_after=wait, status=status)
    named = param if param in DISPENSABLE and code.startswith("unsupported_") else "response_format"
    blamed = named if status in TURNED_DOWN else None
    return Setback("http_error", shown, turned_down=blamed, status=status)


def _is_passed_on(error: Any) -> bool:
    metadata = error.get("metadata") if isinstance(error, dict) else None
    return isinstance(metadata, dict) and ("provider_name" in metadata or "raw" in metadata)


def _words(error: dict[str, Any]) -> str:
    message = error.get("message") or error.get("detail") or error
    words = message if isinstance(message, str) else json.dumps(message)
    metadata = error.get("metadata")
    upstream = metadata.get("raw") if isinstance(metadata, dict) else None
    return f"{words}: {upstream}" if isinstance(upstream, str) else words


def _seconds_until(retry_after: str | None) -> float | None:
    """What a Retry-After header asks for: a number of seconds or a date."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            when = parsedate_to_datetime(retry_after)
        except ValueError:
            return None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        seconds = (when - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _json_or_text(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return _text(body)


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


def presentable(message: str, key: str | None) -> str:
    """A foreign message on one line, without control characters and without the key."""
    if key:
        # Before anything is cut off: a cut could leave a piece of the key.
        message = without_key(message, key)
    printable = "".join(char if char.isprintable() else " " for char in message[:MAX_MESSAGE_SCANNED])
    line = " ".join(printable.split())
    return line if len(line) <= MAX_MESSAGE_CHARS else line[: MAX_MESSAGE_CHARS - 1] + "…"


def without_key(text: str, key: str) -> str:
    """The text with the key, wherever it stands, taken out."""
    return text.replace(key, "[key]")
