"""How many calls a host takes at once, and how long to wait before the next."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from firecircle.voices.hosted.error_bodies import (
    BAD_REQUEST,
    FLEX_FULL,
    MAX_MESSAGE_CHARS,
    MAX_MESSAGE_SCANNED,
    NO_KEY,
    SERVER_FAULT,
    TIMED_OUT,
    TOO_MANY,
    UNPAID,
    Complaint,
    complaint_in,
)

if TYPE_CHECKING:
    from firecircle.circle.voice import Usage
    from firecircle.errors import FailureKind
    from firecircle.voices.hosted.connections import HttpAnswer


UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
STEP = re.compile(
    r"(\d+(?:\.\d+)?)\s*(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])",
    re.IGNORECASE,
)
IN_WORDS = re.compile(
    r"(?:try|retry)\w*(?: again)?(?: your request)? (?:in|after) (?:about |approximately )?"
    rf"((?:{STEP.pattern}\s*)+)",
    re.IGNORECASE,
)
LONGEST_SENTENCE = 2000
LONGEST_HEADER = 100
A_MOMENT = 1e9
"""A larger number is a point in time: seconds or milliseconds since 1970."""
LONGEST_WAIT = 366 * 86400.0
"""A longer wait means: never."""
RESET = re.compile(r"rate-?limit.*reset|^reset")
UNITS_OF_MS = 1e12


def stated_wait(headers: Mapping[str, str], delays: Iterable[str], words: str) -> float | None:
    """The requested wait in seconds; None if there is none."""
    wait = _wait_in_headers(headers, delays, words)
    return None if wait is None else min(wait, LONGEST_WAIT)


def _wait_in_headers(headers: Mapping[str, str], delays: Iterable[str], words: str) -> float | None:
    milliseconds = headers.get("retry-after-ms")
    if milliseconds and (wait := _plain_number(milliseconds)):
        return wait / 1000
    if (wait := seconds_in(headers.get("retry-after", ""))) is not None:
        return wait
    for delay in delays:
        if (wait := seconds_in(delay)) is not None:
            return wait
    if named := IN_WORDS.search(words[:LONGEST_SENTENCE]):
        return seconds_in(named[1].strip())
    return _until_reset(headers)


def _until_reset(headers: Mapping[str, str]) -> float | None:
    """The reset time of the exhausted limit; if none is marked exhausted, the earliest."""
    resets = {
        name.lower(): wait
        for name, value in headers.items()
        if RESET.search(name.lower()) and (wait := seconds_in(value)) is not None
    }
    remaining = {
        name.lower(): _plain_number(value) for name, value in headers.items() if "remaining" in name.lower()
    }
    spent = [wait for name, wait in resets.items() if remaining.get(name.replace("reset", "remaining")) == 0]
    if spent:
        return max(spent)
    return min(resets.values(), default=None)


def seconds_in(text: str) -> float | None:
    """A wait in any header's format: `2`, `0.5`, `12ms`, `20m9.6s`, a date, or a point in time."""
    text = text.strip()
    if not text or len(text) > LONGEST_HEADER:
        return None
    try:
        number = float(text)
    except ValueError:
        return _seconds_spelled(text)
    if not math.isfinite(number):
        return None
    if number > A_MOMENT:
        moment = number / 1000 if number > UNITS_OF_MS else number
        return max(0.0, moment - datetime.now(UTC).timestamp())
    return max(0.0, number)


def _seconds_spelled(text: str) -> float | None:
    steps = STEP.findall(text)
    if steps and not STEP.sub("", text).strip(" ,"):
        seconds = sum(float(number) * UNIT_SECONDS[_unit(name)] for number, name in steps)
        return seconds if math.isfinite(seconds) else None
    when: datetime
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        try:
            when = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _unit(name: str) -> str:
    name = name.lower()
    return "ms" if name.startswith(("ms", "mil")) else name[0]


def _plain_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


# Why one attempt failed, and whether a retry may succeed

PASSING = (TIMED_OUT, 409, 425)
"""Statuses below 500 that mean: not now."""
GAVE_UP_WAITING = (504, 524)
"""A gateway that did not wait for the model, whose work may still be charged."""
OF_PAYMENT = re.compile(
    r"insufficient[ _](quota|balance|credit|fund)|credit balance|(any|of|more|available) credits|"
    r"spending limit|billing[ _](hard|not)|payment required|余额|欠费|arrear",
    re.IGNORECASE,
)
OF_KEY = re.compile(
    r"(invalid|incorrect|missing) api[ _-]?key|api[ _-]?key (is )?(not valid|invalid|expired)", re.IGNORECASE
)


class Setback(Exception):  # noqa: N818 - the end of one attempt; the caller decides whether it is an error
    """One attempt did not give a reply."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        worth_retrying: bool = False,
        retry_after: float | None = None,
        complaint: Complaint | None = None,
        status: int = 0,
        of_everybody: bool = False,
        usage: Usage | None = None,
        unmetered: bool = False,
        unknown_model: bool = False,
        never_sent: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.worth_retrying = worth_retrying
        self.retry_after = retry_after
        """The requested wait in seconds."""
        self.complaint = complaint
        """The endpoint's message, if it may be about a field of the request."""
        self.status = status
        """The HTTP status, wherever the endpoint put it."""
        self.of_everybody = of_everybody
        """Whether the wait applies to all models of the provider."""
        self.usage = usage
        self.unmetered = unmetered
        """Whether the model may have worked without any stated usage."""
        self.unknown_model = unknown_model
        """Whether the provider says that it does not have this model."""
        self.never_sent = never_sent
        """Whether there was no free slot in time."""

    @property
    def may_pass(self) -> bool:
        """Whether the same call may work later: call, key and account are valid."""
        if self.kind == "timeout":
            return self.never_sent  # a model that is too slow stays too slow
        return self.worth_retrying or self.never_sent


def setback_of(body: Any, answer: HttpAnswer, usage: Usage | None = None) -> Setback:
    """The `Setback` for an error anywhere in an answer."""
    complaint = complaint_in(body, answer.status)
    status = complaint.status
    shown = complaint.words
    shown = f"{shown} (HTTP {status})" if shown and status else shown or f"HTTP {status}"
    if complaint.is_refusal:
        return Setback("refused", shown, usage=usage)
    insists = answer.headers.get("x-should-retry", "").lower()
    wait = stated_wait(answer.headers, complaint.delays, complaint.words)
    if status in (TOO_MANY, FLEX_FULL):
        passes = complaint.waiting_helps and insists != "false"
        return Setback(
            "rate_limited",
            shown,
            worth_retrying=passes,
            retry_after=wait,
            status=status if complaint.waiting_helps else _status_of_trouble(complaint),
            of_everybody=complaint.is_of_everybody,
            usage=usage,
        )
    passing = status in PASSING or status >= SERVER_FAULT
    passing = (passing and not complaint.is_too_long and insists != "false") or insists == "true"
    return Setback(
        "http_error",
        shown,
        worth_retrying=passing,
        retry_after=wait if passing else None,
        complaint=complaint,
        status=_status_of_trouble(complaint),
        usage=usage,
        unmetered=status in GAVE_UP_WAITING,
        unknown_model=complaint.is_of_unknown_model,
    )


def _status_of_trouble(complaint: Complaint) -> int:
    """A status that says what to do: many endpoints use another one for a missing key or payment."""
    if not BAD_REQUEST <= complaint.status < SERVER_FAULT:
        return complaint.status
    if OF_PAYMENT.search(complaint.text):
        return UNPAID
    return NO_KEY if OF_KEY.search(complaint.text) else complaint.status


def presentable(message: str, key: str | None) -> str:
    """A foreign message on one line, without control characters and without the key."""
    if key:
        # Before truncation, which could leave a part of the key.
        message = without_key(message, key)
    printable = "".join(char if char.isprintable() else " " for char in message[:MAX_MESSAGE_SCANNED])
    line = " ".join(printable.split())
    return line if len(line) <= MAX_MESSAGE_CHARS else line[: MAX_MESSAGE_CHARS - 1] + "…"


def without_key(text: str, key: str) -> str:
    """Remove the key from a text."""
    return text.replace(key, "[key]")
