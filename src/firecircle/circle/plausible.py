"""Refuse impossible records: a file may have been written by anyone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from firecircle.circle.panel import Panel
from firecircle.circle.result import CallRecord, CircleRecord, Failure
from firecircle.errors import ConfigError

EXTRA_ROUNDS = 1
"""A divided circle may run one more round than configured."""
COUNTED = (
    *("attempts", "latency_seconds", "waited_seconds", "tokens_in", "tokens_cached", "tokens_out"),
    *("cost_usd", "estimated_tokens", "estimated_usd"),
)
"""The figures of a call that are summed: a negative one would hide the use of others."""


def require_plausible(record: CircleRecord | Panel) -> None:
    """Refuse an impossible record. Tables depend on round numbers, votes on voices."""
    if isinstance(record, Panel):
        _require_single("answers", (said.model for said in record.evaluations))
        _require_members({*record.config.models}, (said.model for said in record.evaluations))
        _require_losses(record.failures, {said.model: 1 for said in record.evaluations})
        _require_calls(record.calls, 1)
        return
    rounds = len(record.dialogue_history)
    if rounds > record.config.max_rounds + EXTRA_ROUNDS:
        raise ConfigError("circle", f"{rounds:,} rounds, and it was set to {record.config.max_rounds}")
    for number, held in enumerate(record.dialogue_history, start=1):
        if held.round_number != number:
            raise ConfigError("circle", f"round {number} is numbered {held.round_number}")
        _require_single(f"answers in round {number}", (said.model for said in held.evaluations))
        if any(said.round_number not in (number, None) for said in held.evaluations):
            raise ConfigError("circle", f"an answer in round {number} says that it was given in another")
    seated = (*record.config.models, *(new.model for new in record.substitutions))
    _require_single("seats", seated)
    last_spoke = {
        said.model: number
        for number, held in enumerate(record.dialogue_history, start=1)
        for said in held.evaluations
    }
    _require_members({*seated, *record.config.reserves}, last_spoke)
    _require_losses(record.failures, last_spoke)
    _require_calls(record.calls, rounds + 1)


def _require_single(what: str, voices: Iterable[str]) -> None:
    for voice, count in Counter(voices).items():
        if count > 1:
            raise ConfigError("circle", f"a voice has {count:,} {what}: {voice}")


def _require_members(seated: set[str], speakers: Iterable[str]) -> None:
    for voice in speakers:
        if voice not in seated:
            raise ConfigError("circle", f"an answer of {voice}, who does not sit in it")


def _require_losses(failures: Iterable[Failure], last_spoke: dict[str, int]) -> None:
    """A lost voice is lost once, and says nothing more."""
    failures = tuple(failures)
    _require_single("failures", (lost.model for lost in failures))
    for lost in failures:
        if last_spoke.get(lost.model, 0) >= lost.round_number:
            raise ConfigError(
                "circle", f"{lost.model} was lost in round {lost.round_number}, and answers later"
            )


def _require_calls(calls: Iterable[CallRecord], rounds: int) -> None:
    for call in calls:
        if not 1 <= call.round_number <= rounds:
            raise ConfigError("circle", f"a call of {call.model} in round {call.round_number}")
        for name in COUNTED:
            if (getattr(call, name) or 0) < 0:
                raise ConfigError("circle", f"a call of {call.model} with a negative {name}")
