"""Judging one prompt for the command line: show it happening, keep the session, tell the verdict."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from rich.console import Console

from firecircle.circle.events import Listener
from firecircle.circle.result import FireCircleResult
from firecircle.cli.evaluate.compact import print_failure, print_result
from firecircle.cli.evaluate.inputs import save_session
from firecircle.cli.evaluate.request import Request
from firecircle.cli.evaluate.storage import warn_of_unsaved
from firecircle.cli.output import console_on, print_all
from firecircle.cli.printable import printable_line
from firecircle.cli.report.report import circle_report, glance_report, panel_report, unfinished_report
from firecircle.cli.report.table import following
from firecircle.cli.trouble import INTERRUPTED, NO_ALARM, STATUS, TROUBLE, complain
from firecircle.errors import EvaluationError, partial_result_of
from firecircle.guard import PromptGuard
from firecircle.metrics import ReciprocityMetrics
from firecircle.names import EvaluationMode, is_person


@dataclass(frozen=True, slots=True)
class CalledOff:
    """The user pressed Ctrl-C."""

    heard: FireCircleResult | None = None


def judge(request: Request) -> int:
    """Judge the prompt and print what came of it; the exit status."""
    console = console_on(sys.stderr if request.as_json else sys.stdout)
    introduction = request.introduction
    with warn_of_unsaved() as unkept:
        with request.store or nullcontext():
            try:
                with _show_rounds(console, request) as listener:
                    outcome = asyncio.run(_ask_guard(request, listener, unkept))
            except EvaluationError as error:
                return _fail(console, request, str(error), error.partial_result, TROUBLE)
            if isinstance(outcome, CalledOff):
                return _fail(console, request, "interrupted", outcome.heard, INTERRUPTED)
            try:
                if request.session and request.session_file:
                    save_session(request.session, request.session_file)
            finally:
                _tell(console, request, outcome, introduction)
        # The verdict goes first; but whoever waits for 0 would count on what is not there.
        status = STATUS[outcome.verdict]
        return TROUBLE if unkept and status == NO_ALARM else status


async def _ask_guard(
    request: Request, listener: Listener | None, unkept: list[str]
) -> ReciprocityMetrics | CalledOff:
    guard = PromptGuard(request.config, store=request.store, on_unkept=unkept.append)
    try:
        return await guard.evaluate_prompt(
            request.prompt,
            session_memory=request.session,
            on_event=listener,
            label=request.label,
            bank=request.bank,
            seating=request.seating,
        )
    except asyncio.CancelledError as cancelled:
        return CalledOff(partial_result_of(cancelled))


@contextmanager
def _show_rounds(console: Console, request: Request) -> Iterator[Listener | None]:
    """Show the judging while it happens."""
    if (request.as_json and not console.is_terminal) or any(map(is_person, request.config.named_models)):
        yield None  # a live table would write over what a person is asked
    elif request.mode is EvaluationMode.FIRE_CIRCLE:
        introduction = request.introduction if request.verbose else request.first_line
        with following(console, request.threshold, introduction, verbose=request.verbose) as listener:
            yield listener
    elif console.is_terminal:
        with console.status(f"listening to {', '.join(map(printable_line, request.config.first_asked))}"):
            yield None
    else:
        yield None


def _tell(console: Console, request: Request, metrics: ReciprocityMetrics, introduction: str) -> None:
    result = metrics.fire_circle
    if request.as_json:
        print_result(metrics, request)
    elif result is not None:
        report = circle_report if request.verbose else glance_report
        print_all(console, report(console, request, result, metrics))
    else:
        print_all(console, [introduction, *panel_report(console, request, metrics)])


def _fail(
    console: Console, request: Request, message: str, partial: FireCircleResult | None, status: int
) -> int:
    """Say what went wrong, and what was heard before it did."""
    message = _with_the_cause(message, partial)
    complain(message)
    kept_as = request.store.recorder.latest if request.store else None
    if request.as_json:
        print_failure(message, partial, request, kept_as)
    elif partial is not None:
        print_all(console, unfinished_report(console, request, partial, kept_as))
    return status


def _with_the_cause(message: str, partial: FireCircleResult | None) -> str:
    """The engine's words, and those of the voice that was lost first unless they are in them."""
    first = next(iter(partial.failures), None) if partial else None
    return (
        message
        if first is None or first.message in message
        else f"{message} ({first.model}: {first.message})"
    )
