"""Judging a batch: one process and one event loop, so that all prompts share the providers' limits."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.panel import Guide
from firecircle.cli.evaluate.batch.files import write_rows
from firecircle.cli.evaluate.batch.options import FailOn
from firecircle.cli.evaluate.batch.outcome import BatchOutcome, Outcome
from firecircle.cli.evaluate.batch.reading import Batch
from firecircle.cli.evaluate.batch.view import BatchView, summary_lines
from firecircle.cli.evaluate.storage import warned_when_not_kept
from firecircle.cli.output import console_on, print_line
from firecircle.errors import ConfigError, PromptError
from firecircle.guard import PromptGuard
from firecircle.lab.datasets import Record
from firecircle.names import is_embedded, is_local
from firecircle.request import Configured
from firecircle.store.opening import Store

HOSTED_AT_ONCE, LOCAL_AT_ONCE = 16, 8


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """The prompts, who judges them and how, and where the outcomes go."""

    batch: Batch
    judges: Sequence[Configured]
    """Who judges each record of the batch."""
    store: Store | None
    label: str | None
    """Of the prompts that have none of their own."""
    bank: Guide | None
    fail_on: FailOn
    out: str | None
    at_once: int | None
    quiet: bool

    def label_of(self, record: Record) -> str | None:
        """What the store keeps the prompt under."""
        return record.label or self.label


def judge_batch(request: BatchRequest) -> int:
    """Judge all prompts, print a line each and what they come to; the exit status."""
    batch = request.batch
    console = console_on(sys.stdout)
    threshold = request.judges[0].config.alarm_threshold if request.judges else 0.0
    view = BatchView(console, batch, threshold, quiet=request.quiet)
    progress = _Progress(batch, view)
    started = time.monotonic()
    with warned_when_not_kept(), request.store or nullcontext(), view.open():
        interrupted = asyncio.run(_judge_all(request, progress))
        progress.show_rest()
    outcome = BatchOutcome(
        batch.name, len(batch.rows), time.monotonic() - started, progress.shown, interrupted
    )
    if request.out is not None:
        write_rows(outcome, request.out)
    _print_summary(outcome, kept=request.store is not None, to_stdout=console.is_terminal or request.quiet)
    return outcome.status(request.fail_on)


def _print_summary(outcome: BatchOutcome, *, kept: bool, to_stdout: bool) -> None:
    """Whoever reads the lines of a pipe must not find another kind of line among them."""
    console = console_on(sys.stdout if to_stdout else sys.stderr)
    if console.is_terminal:
        console.print()
    for line in summary_lines(outcome, kept=kept):
        print_line(console, line)


class _Progress:
    """Outcomes as they come, shown as soon as all before them are known."""

    def __init__(self, batch: Batch, view: BatchView) -> None:
        self._view = view
        self._known: dict[int, Outcome] = {}
        self._next = 0
        self.shown: list[Outcome] = []
        self.places: list[int] = []
        """Which row of the file each record is."""
        for place, row in enumerate(batch.rows):
            if isinstance(row, Record):
                self.places.append(place)
            else:
                self.take(place, Outcome.of_bad_row(row, batch.name))

    def take(self, place: int, outcome: Outcome) -> None:
        """What came of the row at this place."""
        self._known[place] = outcome
        self._view.count(outcome.word)

    def show(self) -> None:
        """Show what can be shown in the order of the file."""
        while self._next in self._known:
            self._show(self._known.pop(self._next))
            self._next += 1

    def show_rest(self) -> None:
        """Show what came after a row that was never judged."""
        for place in sorted(self._known):
            self._show(self._known.pop(place))

    def _show(self, outcome: Outcome) -> None:
        self.shown.append(outcome)
        self._view.show(outcome)


async def _judge_all(request: BatchRequest, progress: _Progress) -> bool:
    """Judge every record; whether the user called it off."""
    progress.show()
    try:
        for judges, numbers in _by_judges(request.judges):
            await _judge_some(request, judges, numbers, progress)
    except asyncio.CancelledError:
        return True
    return False


def _by_judges(judges: Sequence[Configured]) -> list[tuple[Configured, list[int]]]:
    """The numbers of the records, together with those that the same voices judge."""
    together: list[tuple[Configured, list[int]]] = []
    for number, configured in enumerate(judges):
        same = next((numbers for other, numbers in together if other == configured), None)
        if same is None:
            together.append((configured, [number]))
        else:
            same.append(number)
    return together


async def _judge_some(
    request: BatchRequest, judges: Configured, numbers: list[int], progress: _Progress
) -> None:
    config = judges.config
    records = request.batch.records
    guard = PromptGuard(
        config if isinstance(config, EvaluationConfig) else None, store=request.store, bank=request.bank
    )
    chosen = [records[number] for number in numbers]
    outcomes = guard.evaluate_each(
        [record.prompt for record in chosen],
        config.mode if isinstance(config, EvaluationConfig) else "fire_circle",
        config if isinstance(config, FireCircleConfig) else None,
        concurrency=request.at_once or _usual_concurrency(config),
        labels=[request.label_of(record) for record in chosen],
        record_ids=[request.batch.kept_as(record) for record in chosen],
        seating=judges.seating,
    )
    async with aclosing(outcomes):
        async for judged in outcomes:
            if isinstance(judged.outcome, ConfigError) and not isinstance(judged.outcome, PromptError):
                raise judged.outcome  # a missing key or an unknown model is the same for all prompts
            record = chosen[judged.index]
            outcome = Outcome.of_prompt(
                record, request.label_of(record), judged.outcome, config.alarm_threshold
            )
            progress.take(progress.places[numbers[judged.index]], outcome)
            progress.show()


def _usual_concurrency(config: EvaluationConfig | FireCircleConfig) -> int:
    on_this_machine = all(is_embedded(model) or is_local(model) for model in config.first_asked)
    return LOCAL_AT_ONCE if on_this_machine else HOSTED_AT_ONCE
