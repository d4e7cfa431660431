"""The chat-completions format: what is sent, what comes back, and what an endpoint says when it will not."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from firecircle.circle.voice import Reply, Turn, Usage

if TYPE_CHECKING:
    from firecircle.errors import FailureKind
    from firecircle.voices.connections import HttpAnswer
    from firecircle.voices.providers import Provider

MAX_MESSAGE_CHARS = 300
MAX_MESSAGE_SCANNED = 20_000
"""An answer that should have been short may be megabytes long."""
TURNED_DOWN = (400, 404, 422)
"""How endpoints answer a request that holds a field they do not know."""
DISPENSABLE = ("max_tokens", "temperature", "seed", "random_seed", "response_format")
TIMED_OUT, TOO_MANY, SERVER_FAULT = 408, 429, 500
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
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.worth_retrying = worth_retrying
        self.retry_after = retry_after
        """How many seconds the endpoint asked to wait."""
        self.turned_down = turned_down
        """The field of the request that this model may be unable to take."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A turn as it is put to one model."""

    turn: Turn
    name: str
    """What the provider calls the model."""
    provider: Provider
    dropped: frozenset[str] = frozenset()
    """Fields that this model was found not to take."""

    def body(self) -> bytes:
        """The request, ready to be sent."""
        turn = self.turn
        fields: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": said.role, "content": said.content} for said in turn.messages],
            "max_tokens": turn.max_tokens,
            "temperature": turn.temperature,
        }
        if turn.seed is not None:
            fields[self.provider.seed_field] = turn.seed
        if turn.reply_schema is not None:
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
        if field == "response_format" and self.turn.reply_schema is None:
            return None
        return replace(self, dropped=self.dropped | {field})


def read_reply(answer: HttpAnswer, attempts: int) -> Reply:
    """The reply in an endpoint's answer; a `Setback` when there is none."""
    if not 200 <= answer.status < 300:
        raise _complaint(_json_or_text(answer.body), answer.status, answer)
    if answer.content_type and "json" not in answer.content_type:
        raise Setback("http_error", f"answered {answer.content_type}, not JSON: {_text(answer.body)}")
    told = _json_or_text(answer.body)
    if not isinstance(told, dict):
        raise Setback("http_error", f"the answer is not a JSON object: {_text(answer.body)}")
    if told.get("error"):
        raise _complaint(told, answer.status, answer)
    choices = told.get("choices")
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
        _content(message.get("content")),
        _content(message.get("reasoning") or message.get("reasoning_content")) or None,
        _usage(told.get("usage")),
        attempts,
    )


def _require_consent(choice: dict[str, Any], message: dict[str, Any]) -> None:
    if refusal := message.get("refusal"):
        raise Setback("refused", str(refusal))
    reason = str(choice.get("finish_reason") or "").lower()
    if reason.startswith(FILTERED):
        raise Setback("refused", f"stopped by the endpoint's filter (finish_reason {reason})")


def _content(content: Any) -> str:
    """A message's text, given whole or in parts."""
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _usage(told: Any) -> Usage:
    if not isinstance(told, dict):
        return Usage()
    details = told.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        tokens_in=_count(told.get("prompt_tokens")),
        tokens_cached=_count(cached),
        tokens_out=_count(told.get("completion_tokens")),
        cost_usd=_price(told.get("cost")),
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _price(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _complaint(told: Any, status: int, answer: HttpAnswer) -> Setback:
    """What an endpoint complained of, in its own words: each has its own way of wrapping them."""
    if isinstance(told, list) and told:
        told = told[0]
    error = told.get("error") or told if isinstance(told, dict) else told
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
        # A spent quota is told as 429 too, but no waiting brings it back.
        waiting_helps = code != "insufficient_quota"
        return Setback(
            "rate_limited",
            shown,
            worth_retrying=waiting_helps,
            retry_after=_seconds_until(answer.retry_after),
        )
    if status == TIMED_OUT or status >= SERVER_FAULT:
        return Setback(
            "http_error", shown, worth_retrying=True, retry_after=_seconds_until(answer.retry_after)
        )
    named = param if param in DISPENSABLE and code.startswith("unsupported_") else "response_format"
    return Setback("http_error", shown, turned_down=named if status in TURNED_DOWN else None)


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
        # Before anything is cut off, lest the cut leave a piece of the key.
        message = message.replace(key, "[key]")
    printable = "".join(char if char.isprintable() else " " for char in message[:MAX_MESSAGE_SCANNED])
    line = " ".join(printable.split())
    return line if len(line) <= MAX_MESSAGE_CHARS else line[: MAX_MESSAGE_CHARS - 1] + "…"
