"""How a result's own short names read: rounds, endings, failures, rules, and why a pattern was left out."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

    from firecircle.circle.result import LeftOut, RoundKind
    from firecircle.errors import FailureKind
    from firecircle.names import StopReason
    from firecircle.verdict import VerdictWord

HALF_A_DAY = 43_200
ROUND_WORDS: dict[RoundKind, str] = {
    "baseline": "independent",
    "discussion": "discussion",
    "synthesis": "final round",
}
STOP_WORDS: dict[StopReason, str] = {
    "all_rounds_held": "as planned",
    "converged": "the voices agree",
    "aborted": "aborted",
    "over_budget": "the budget is spent",
    "cancelled": "called off",
    "interrupted": "interrupted",
}
FAILURE_WORDS: dict[FailureKind, str] = {
    "timeout": "timeout",
    "rate_limited": "rate limit",
    "http_error": "http error",
    "connection": "connection",
    "refused": "refused",
    "cut_off": "cut off",
    "unparseable": "unreadable",
    "over_budget": "budget",
    "raised": "error",
}
LEFT_OUT_WORDS: dict[LeftOut, str] = {
    "below_threshold": "seen by too few",
    "withdrawn": "withdrawn",
    "no_critical_role": "seen by no voice of a critical role",
    "no_grounded_quote": "shown by no words of the prompt",
    "voice_not_active": "seen only by a lost voice",
}


def counted(count: int, thing: str) -> str:
    """A number with its noun."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def verdict_counts(words: Mapping[VerdictWord, int]) -> list[str]:
    """How many of each verdict; unread prompts and those without a verdict where there are any."""
    unread, without = words.get("unread", 0), words.get("no_verdict", 0)
    return [
        counted(words.get("alarm", 0), "alarm"),
        f"{words.get('unsure', 0):,} unsure",
        f"{words.get('no_alarm', 0):,} without alarm",
        *([f"{unread:,} unread"] if unread else []),
        *([f"{without:,} without a verdict"] if without else []),
    ]


def time_text(at: float, form: str, zone: tzinfo | None = None) -> str:
    """A time in this form, here or in a zone; one that no calendar has never breaks a list."""
    try:
        return datetime.fromtimestamp(at, zone).astimezone(zone).strftime(form)
    except (OverflowError, ValueError, OSError):
        return "?"


def shown_pause(host: str, why: str, resumes_at: float) -> str:
    """That everybody waits for a provider, and until when."""
    form = "%H:%M:%S" if resumes_at - time.time() < HALF_A_DAY else "%Y-%m-%d %H:%M"
    return f"paused until {time_text(resumes_at, form)}: {host} is out ({why})"
