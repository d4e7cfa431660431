"""One plain line for each thing that happens in a circle, for logs and pipes."""

from __future__ import annotations

from firecircle.circle.events import (
    CircleClosed,
    CircleConvened,
    Event,
    QuorumChecked,
    ReserveAsked,
    RoundClosed,
    RoundStarted,
    VoiceAnswered,
    VoiceFailed,
    VoiceRecruited,
    VoiceRetried,
)
from firecircle.circle.result import StopReason
from firecircle.cli.marks import ALARM_MARK, FAILURE_WORDS, ROUND_WORDS, notes_of
from firecircle.cli.printable import printable_line

STOP_WORDS: dict[StopReason, str] = {
    "all_rounds_held": "as planned",
    "converged": "the voices agree",
    "aborted": "aborted",
    "over_budget": "the budget is spent",
    "cancelled": "called off",
    "interrupted": "interrupted",
}
LONGEST_REASON = 300


def line_of(event: Event, threshold: float) -> str:
    """The event in one line."""
    match event:
        case CircleConvened():
            return f"circle: {', '.join(map(printable_line, event.models))}"
        case RoundStarted(round_number=number):
            chair = event.empty_chair_model
            seat = f", {printable_line(chair)} in the empty chair" if chair else ""
            return f"round {number} ({ROUND_WORDS[event.round_kind]}): {len(event.models)} asked{seat}"
        case ReserveAsked():
            return f"round {event.round_number}: {printable_line(event.model)} is asked as a reserve"
        case VoiceRetried():
            return (
                f"round {event.round_number}: {printable_line(event.model)} tries again in"
                f" {event.wait_seconds:.1f} s (attempt {event.attempt}):"
                f" {printable_line(event.reason, LONGEST_REASON)}"
            )
        case VoiceAnswered(evaluation=said):
            alarm = f" {ALARM_MARK}" if said.falsehood >= threshold else ""
            notes = "".join(f"; {note}" for note in notes_of(said))
            return (
                f"round {event.round_number}: {printable_line(event.model)}"
                f" F {said.falsehood:.2f}{alarm} (T {said.truth:.2f}, I {said.indeterminacy:.2f}){notes}"
            )
        case VoiceFailed(failure=lost):
            return (
                f"round {event.round_number}: {printable_line(event.model)} lost, {FAILURE_WORDS[lost.kind]}:"
                f" {printable_line(lost.message, LONGEST_REASON)}"
            )
        case VoiceRecruited(substitution=seat):
            lost_names = ", ".join(map(printable_line, seat.replaces))
            return f"round {event.round_number}: {printable_line(event.model)} sits in for {lost_names}"
        case QuorumChecked(verdict=verdict):
            state = "holds" if verdict.valid else f"does not hold: {verdict.reason}"
            waived = "" if verdict.enforced else " (not enforced)"
            return f"round {event.round_number}: quorum {state}{waived}"
        case RoundClosed():
            return (
                f"round {event.round_number} closed: mean F {event.f_score_mean:.2f},"
                f" spread {event.f_score_stddev:.2f}, {event.duration_seconds:.1f} s"
            )
        case CircleClosed(result=result):
            return f"circle closed: {STOP_WORDS[result.stopped]}"
