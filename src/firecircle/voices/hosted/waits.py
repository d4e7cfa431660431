"""How long an endpoint asks to wait: in one of a dozen headers, in the error, or only in its words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

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
"""A number beyond this is a point in time: seconds since 1970, or thousandths of them."""
LONGEST_WAIT = 366 * 86400.0
"""Whoever asks for more means: never."""
RESET = re.compile(r"rate-?limit.*reset|^reset")
UNITS_OF_MS = 1e12


def stated_wait(headers: Mapping[str, str], delays: Iterable[str], words: str) -> float | None:
    """The wait that an answer asks for, in seconds; None when it asks for none."""
    wait = _stated(headers, delays, words)
    return None if wait is None else min(wait, LONGEST_WAIT)


def _stated(headers: Mapping[str, str], delays: Iterable[str], words: str) -> float | None:
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
    """When the limit that is used up is counted anew; where none is marked so, the first that will be."""
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
    """A wait as any header spells it: `2`, `0.5`, `12ms`, `20m9.6s`, a date, or a point in time."""
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
