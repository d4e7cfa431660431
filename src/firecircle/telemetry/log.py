"""A line of JSON for everything that happens in a circle."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import IO, Any

from firecircle.circle.events import (
    CircleClosed,
    CircleConvened,
    Event,
    Listener,
    QuorumChecked,
    RoundClosed,
    RoundStarted,
    VoiceAnswered,
    VoiceFailed,
    VoiceRetried,
)
from firecircle.circle.panel import Panel
from firecircle.circle.result import CallRecord
from firecircle.errors import ConfigError
from firecircle.telemetry.watching import watched_by


def log_to(stream: IO[str]) -> Callable[[], None]:
    """Write a line of JSON for everything that happens in a circle, without anything that was said."""

    def for_a_circle() -> Listener:
        return _CircleLog(stream).tell

    def for_a_panel(panel: Panel) -> None:
        for call in panel.calls:
            _write(stream, "call", circle=panel.panel_id, **_call_facts(call))

    return watched_by(for_a_circle, for_a_panel)


def log_to_target(target: str) -> Callable[[], None]:
    """Write to a file, or with `-` to the error stream; returns what ends it."""
    if target == "-":
        return log_to(sys.stderr)
    try:
        file = open(target, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - open until the command ends
    except OSError as refused:
        raise ConfigError(
            "FIRECIRCLE_LOG",
            f"cannot write {target}: {refused.strerror}",
            "name a file, or - for the error stream",
        ) from None
    stop = log_to(file)

    def end() -> None:
        stop()
        file.close()

    return end


class _CircleLog:
    """The events of one circle as lines, each with the circle's id."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._circle = ""

    def tell(self, event: Event) -> None:
        """One thing that happened."""
        match event:
            case CircleConvened():
                self._circle = event.circle_id
                self._write("circle_convened", voices=event.models, max_rounds=event.max_rounds)
            case RoundStarted():
                about = {"kind": event.round_kind, "voices": event.models, "chair": event.empty_chair_model}
                self._write("round_started", round=event.round_number, **about)
            case VoiceAnswered():
                for call in event.calls:
                    self._write("call", **_call_facts(call))
                self._write(
                    "voice_answered",
                    round=event.round_number,
                    model=event.model,
                    falsehood=event.evaluation.falsehood,
                )
            case VoiceFailed():
                for call in event.calls:
                    self._write("call", **_call_facts(call))
                kind = event.failure.kind
                self._write("voice_failed", round=event.round_number, model=event.model, kind=kind)
            case VoiceRetried():
                wait = {"attempt": event.attempt, "wait_seconds": event.wait_seconds}
                self._write("voice_retried", round=event.round_number, model=event.model, **wait)
            case QuorumChecked():
                self._write("quorum_checked", round=event.round_number, holds=event.verdict.valid)
            case RoundClosed():
                took = round(event.duration_seconds, 6)
                self._write("round_closed", round=event.round_number, seconds=took)
            case CircleClosed(result=result):
                falsehood = result.consensus.falsehood if result.consensus else None
                self._write("circle_closed", status=result.stopped, alarm=result.alarm, falsehood=falsehood)

    def _write(self, event: str, **facts: Any) -> None:
        _write(self._stream, event, circle=self._circle, **facts)


def _call_facts(call: CallRecord) -> dict[str, Any]:
    fields = {
        "model",
        "round_number",
        "purpose",
        "attempts",
        "latency_seconds",
        "tokens_in",
        "tokens_out",
        "cost_usd",
        "failed",
    }
    return call.model_dump(include=fields, exclude_none=True)


def _write(stream: IO[str], event: str, **facts: Any) -> None:
    stream.write(json.dumps({"time": round(time.time(), 6), "event": event, **facts}, default=list) + "\n")
