"""Judging one prompt for the command line: show it happening, keep the session, tell the verdict."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.text import Text

from firecircle.circle.config import FireCircleConfig
from firecircle.circle.events import Listener
from firecircle.circle.result import FireCircleResult
from firecircle.cli.evaluate.compact import print_failure, print_result
from firecircle.cli.evaluate.inputs import save_session, text_of
from firecircle.cli.evaluate.request import Request, warn_of_unsaved
from firecircle.cli.live_table import following
from firecircle.cli.output import VERDICT_STYLES, console_on, print_all, print_json
from firecircle.cli.report import circle_report, glance_report, panel_report, unfinished_report
from firecircle.cli.trouble import INTERRUPTED, NO_ALARM, STATUS, TROUBLE, complain
from firecircle.conversation.arc import Conversation
from firecircle.conversation.judging import judge_conversation
from firecircle.conversation.messages import read_transcripts
from firecircle.errors import ConfigError, EvaluationError, partial_result_of
from firecircle.guard import PromptGuard
from firecircle.metrics import ReciprocityMetrics
from firecircle.names import EvaluationMode, is_person
from firecircle.request import JudgingRequest, configure_by_file, offline_request
from firecircle.store.opening import Store
from firecircle.telling.conversation import headline, rows_of, sentences_about
from firecircle.telling.safe_text import printable_line, shortened
from firecircle.verdict import WORST_FIRST


def judge(request: Request) -> int:
    """Judge the prompt and print what came of it; the exit status."""
    console = console_on(sys.stderr if request.as_json else sys.stdout)
    introduction = request.introduction
    with warn_of_unsaved() as unkept:
        with request.store or nullcontext():
            try:
                with _show_rounds(console, request) as listener:
                    guard = PromptGuard(request.config, store=request.store, on_unkept=unkept.append)
                    outcome = asyncio.run(
                        guard.evaluate_prompt(
                            request.prompt,
                            session_memory=request.session,
                            on_event=listener,
                            label=request.label,
                            bank=request.bank,
                            seating=request.seating,
                        )
                    )
            except EvaluationError as error:
                return _fail(console, request, str(error), error.partial_result, TROUBLE)
            except (KeyboardInterrupt, asyncio.CancelledError) as called_off:
                # Ctrl-C, or `circles cancel`: asyncio raises the one while it handles the other.
                heard = partial_result_of(called_off.__context__ or called_off)
                return _fail(console, request, "interrupted", heard, INTERRUPTED)
            try:
                if request.session and request.session_file:
                    save_session(request.session, request.session_file)
            finally:
                _tell(console, request, outcome, introduction)
        # The verdict goes first; but whoever waits for 0 would count on what is not there.
        status = STATUS[outcome.verdict]
        return TROUBLE if unkept and status == NO_ALARM else status


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


HEADINGS = ("turn", "verdict", "F", "arc", "trust", "gap", "reply")
LINE = "{:<4} {:<10} {:<5} {:<5} {:<5} {:<4} {:<11} "
SHORTEST_SAID = 24


def judge_conversations(
    file: str,
    asked: JudgingRequest,
    *,
    system: str | None,
    offline: bool,
    store: Store | None,
    as_json: bool,
) -> int:
    """Judge every conversation of a file and print what came of it; the exit status of the worst."""
    config = configure_by_file(offline_request(asked) if offline else asked).config
    if not isinstance(config, FireCircleConfig):
        raise ConfigError("--conversation", "a conversation is judged by a circle", "leave --mode out")
    transcripts = read_transcripts(file, "" if system is None else text_of("--system", system))
    console = console_on(sys.stdout)
    done: list[Conversation] = []
    with warn_of_unsaved() as unkept, store or nullcontext():
        for transcript in transcripts:
            judging = judge_conversation(transcript, config=config, store=store, on_unkept=unkept.append)
            judged = asyncio.run(judging)
            done.append(judged)
            if not as_json:
                _show(console, judged, named=len(transcripts) > 1)
    if as_json:
        documents = [judged.model_dump(mode="json") for judged in done]
        print_json(documents[0] if len(documents) == 1 else {"conversations": documents})
    return STATUS[min((judged.verdict for judged in done), key=WORST_FIRST.index)]


def _show(console: Console, judged: Conversation, *, named: bool) -> None:
    if named:
        console.print(Text(printable_line(judged.name), style="bold"))
    console.print(Text(headline(judged), style=VERDICT_STYLES[judged.verdict]))
    for sentence in sentences_about(judged, printable_line):
        console.print(Text(sentence), soft_wrap=not console.is_terminal)
    room = max(SHORTEST_SAID, console.width - len(LINE.format(*HEADINGS)))
    console.print(Text(LINE.format(*HEADINGS) + "said", style="dim"))
    for row in rows_of(judged, printable_line):
        cells = row.word, row.falsehood, row.arc, row.trust, row.gap, row.reply
        line = Text(LINE.format(f"{row.number}{'!' if row.is_due else ''}", *cells))
        line.stylize(VERDICT_STYLES[row.verdict], 5, 5 + len(row.word))
        console.print(line.append(shortened(row.said, room)), soft_wrap=True)
    console.print()
