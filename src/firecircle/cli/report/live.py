"""Following a circle while it sits: a live table on a terminal, one plain line an event anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from rich.console import Console
from rich.live import Live

from firecircle.circle.events import (
    CircleClosed,
    CircleConvened,
    Event,
    Listener,
    QuorumChecked,
    ReserveAsked,
    RoundClosed,
    RoundStarted,
    VoiceAnswered,
    VoiceFailed,
    VoiceRecruited,
    VoiceRetried,
)
from firecircle.cli.output import print_line
from firecircle.cli.printable import printable_line
from firecircle.cli.report.table import TableView
from firecircle.telling.answers import ALARM_SYMBOL, cares_about
from firecircle.telling.table import VoiceTable
from firecircle.telling.words import FAILURE_WORDS, ROUND_WORDS, STOP_WORDS
from firecircle.thresholds import reaches

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
        case VoiceAnswered(evaluation=evaluation):
            alarm = f" {ALARM_SYMBOL}" if reaches(evaluation.falsehood, threshold) else ""
            numbers = f"(T {evaluation.truth:.2f}, I {evaluation.indeterminacy:.2f})"
            notes = "".join(f"; {note}" for note in cares_about(evaluation))
            return (
                f"round {event.round_number}: {printable_line(event.model)}"
                f" F {evaluation.falsehood:.2f}{alarm} {numbers}{notes}"
            )
        case VoiceFailed(failure=failure):
            return (
                f"round {event.round_number}: {printable_line(event.model)} lost,"
                f" {FAILURE_WORDS[failure.kind]}: {printable_line(failure.message, LONGEST_REASON)}"
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


FRAMES_PER_SECOND = 8


@contextmanager
def following(console: Console, threshold: float, introduction: str) -> Iterator[Listener]:
    """A listener that shows each event as it comes; the introduction waits until the voices are seated."""
    with ExitStack() as open_views:
        show: Listener | None = None

        def listener(event: Event) -> None:
            nonlocal show
            if show is None:
                console.print(introduction, soft_wrap=not console.is_terminal)
                show = open_views.enter_context(_view(console, threshold))
            show(event)

        yield listener


@contextmanager
def _view(console: Console, threshold: float) -> Iterator[Listener]:
    if console.is_terminal and not console.is_dumb_terminal:
        with _live(console, threshold) as listener:
            yield listener
    else:
        yield lambda event: print_line(console, line_of(event, threshold))


@contextmanager
def _live(console: Console, threshold: float) -> Iterator[Listener]:
    view = TableView(VoiceTable(threshold), running=True)
    with Live(view, console=console, refresh_per_second=FRAMES_PER_SECOND) as live:

        def show(event: Event) -> None:
            nonlocal view
            # A table is never changed in place, so the thread that draws always sees a whole one.
            view = replace(view, table=view.table.after(event))
            live.update(view)

        try:
            yield show
        finally:
            live.update(replace(view, running=False))
