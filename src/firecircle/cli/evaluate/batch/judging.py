"""Judging a batch: one process and one event loop, so that all prompts share the providers' limits."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Protocol

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.panel import Guide
from firecircle.circle.result import Usages
from firecircle.cli.evaluate.batch.ci import write_junit, write_sarif
from firecircle.cli.evaluate.batch.files import batch_document, write_rows
from firecircle.cli.evaluate.batch.options import BatchOptions, FailOn
from firecircle.cli.evaluate.batch.outcome import INTERRUPTION, BatchOutcome, Outcome
from firecircle.cli.evaluate.batch.reading import Batch
from firecircle.cli.evaluate.batch.spending import Amount, BatchBudget, with_budget
from firecircle.cli.evaluate.batch.view import BatchView, summary_lines
from firecircle.cli.evaluate.storage import warned_when_not_kept
from firecircle.cli.output import console_on, print_json, print_line
from firecircle.errors import PASSING_KINDS, ConfigError, EvaluationError, FireCircleError, PromptError
from firecircle.guard import PromptGuard
from firecircle.lab.datasets import Record
from firecircle.metrics import ReciprocityMetrics
from firecircle.names import EvaluationMode, is_embedded, is_local
from firecircle.request import Configured
from firecircle.settings import current_settings
from firecircle.store.opening import Store
from firecircle.verdict import VerdictWord
from firecircle.voices.outages import TRIES, Outages, Pause, StillOut

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
    options: BatchOptions
    as_json: bool = False

    @property
    def threshold(self) -> float:
        """The falsehood from which on it is an alarm."""
        return self.judges[0].config.alarm_threshold if self.judges else 0.0

    @property
    def mode(self) -> EvaluationMode:
        """Whether the voices talk, and if not, whether there are several."""
        return self.judges[0].config.mode if self.judges else EvaluationMode.FIRE_CIRCLE

    @property
    def fail_on(self) -> FailOn:
        """What makes the exit status 1."""
        return self.options.fail_on or "alarm"

    def label_of(self, record: Record) -> str | None:
        """What the store keeps the prompt under."""
        return record.label or self.label


def judge_batch(request: BatchRequest) -> int:
    """Judge all prompts, print a line each and what they come to; the exit status."""
    batch, options = request.batch, request.options
    console = console_on(sys.stderr if request.as_json else sys.stdout)
    rows_are_shown = not options.quiet and (console.is_terminal or not request.as_json)
    view = BatchView(console, batch, request.threshold, quiet=not rows_are_shown)
    outcome = outcome_of(request, view)
    if request.as_json:
        print_json(batch_document(outcome, request.mode, request.threshold))
    if console.is_terminal or not request.as_json:
        _print_summary(
            outcome, kept=request.store is not None, on_stdout=console.is_terminal or options.quiet
        )
    _write_files(outcome, request)  # last: where they cannot be written, the verdicts are told all the same
    return outcome.status(options.fail_on)


class View(Protocol):
    """Whoever shows the outcomes while they come."""

    def open(self) -> AbstractContextManager[None]:
        """While the batch is judged."""
        ...

    def count(self, word: VerdictWord) -> None:
        """One more is done."""
        ...

    def show(self, outcome: Outcome) -> None:
        """The next outcome in the order of the file."""
        ...

    def pause(self, pause: Pause | None) -> None:
        """Everybody waits for a provider; None when that is over."""
        ...


def outcome_of(request: BatchRequest, view: View) -> BatchOutcome:
    """Judge all prompts and show each when all before it are known."""
    batch = request.batch
    started = time.monotonic()
    with warned_when_not_kept() as unkept:
        progress = _Progress(batch, view, unkept)
        with request.store or nullcontext(), view.open():
            stopped = asyncio.run(_judge_all(request, progress))
            progress.show_rest()
    seconds = time.monotonic() - started
    return BatchOutcome(
        batch.name, len(batch.rows), seconds, progress.shown, stopped, unkept, progress.accounts
    )


def _write_files(outcome: BatchOutcome, request: BatchRequest) -> None:
    options = request.options
    if options.out is not None:
        write_rows(outcome, options.out, raw_csv=options.raw_csv)
    if options.junit is not None:
        write_junit(outcome, request.threshold, request.fail_on, options.junit)
    if options.sarif is not None:
        write_sarif(outcome, request.batch, request.threshold, options.sarif)


def _print_summary(outcome: BatchOutcome, *, kept: bool, on_stdout: bool) -> None:
    """Whoever reads the lines of a pipe must not find another kind of line among them."""
    console = console_on(sys.stdout if on_stdout else sys.stderr)
    if console.is_terminal:
        console.print()
    for line in summary_lines(outcome, kept=kept):
        print_line(console, line)


class _Progress:
    """Outcomes as they come, shown as soon as all before them are known."""

    def __init__(self, batch: Batch, view: View, unkept: list[str]) -> None:
        self._view = view
        self.unkept = unkept
        """Why something could not be kept."""
        self.pause = view.pause
        self._known: dict[int, Outcome] = {}
        self._next = 0
        self.shown: list[Outcome] = []
        self.by_place: dict[int, Outcome] = {}
        self.accounts: list[Usages] = []
        """What every judgement so far took."""
        self.places: list[int] = []
        """Which row of the file each record is."""
        for place, row in enumerate(batch.rows):
            if isinstance(row, Record):
                self.places.append(place)
            else:
                self.take(place, Outcome.of_bad_row(row, batch.name))

    @property
    def spent(self) -> Amount:
        """What all of them took."""
        return sum(map(Amount.taken, self.accounts), Amount())

    def take(self, place: int, outcome: Outcome) -> None:
        """What came of the row at this place."""
        self._known[place] = self.by_place[place] = outcome
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


async def _judge_all(request: BatchRequest, progress: _Progress) -> str | None:
    """Judge every record; why it ended before the last one, if it did."""
    progress.show()
    try:
        for judges, numbers in _by_judges(request.judges):
            if stopped := await _judge_all_of(request, judges, numbers, progress):
                return stopped
    except asyncio.CancelledError:
        return INTERRUPTION
    except ConfigError as wrong:  # of settings that changed, or a model file that is gone
        if not progress.accounts:
            raise
        return str(wrong)
    return None


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


async def _judge_all_of(
    request: BatchRequest, judges: Configured, numbers: list[int], progress: _Progress
) -> str | None:
    """Judge these prompts within the budget, and again those that an outage hurt; why it ended early."""
    outages = Outages(current_settings().waiting, progress.pause)
    budget = await BatchBudget.of(judges, request.batch.records, numbers)
    tries: Counter[int] = Counter()
    hurt: dict[int, Outcome] = {}
    stopped = None

    def take(number: int, outcome: Outcome) -> None:
        progress.take(progress.places[number], outcome)
        progress.show()

    try:
        while numbers:
            some, part = budget.fitting(numbers, progress.spent)
            if not some:
                stopped = budget.shortage(numbers[0], progress.spent)
                break
            done = 0
            async with outages.passage():
                with outages.noticed():
                    async for number, outcome, judged in _judged(
                        request, with_budget(judges, part), some, outages, progress.unkept
                    ):
                        done += 1
                        hurt.pop(number, None)
                        progress.accounts.append(_account(judged))
                        is_hurt = _is_hurt(judged, outages)
                        tries[number] += outages.pause is None
                        if not is_hurt or tries[number] >= TRIES:
                            take(number, replace(outcome, lost_in_passing=is_hurt))
                        else:
                            hurt[number] = outcome
            numbers = [*hurt, *(number for number in numbers[done:] if number not in hurt)]
    except StillOut as out:
        stopped = str(out)
    for number, outcome in hurt.items():
        take(number, replace(outcome, lost_in_passing=True))
    return stopped


def _account(judged: ReciprocityMetrics | FireCircleError) -> Usages:
    """What a judgement took, also one that failed."""
    known = judged.accounting if isinstance(judged, ReciprocityMetrics | EvaluationError) else None
    return known.total if known else Usages()


def _is_hurt(judged: ReciprocityMetrics | FireCircleError, outages: Outages) -> bool:
    """Whether a voice was lost to a trouble that passes."""
    if not isinstance(judged, ReciprocityMetrics | EvaluationError):
        return False
    return any(
        failure.kind in PASSING_KINDS and outages.has_lost(failure.model) for failure in judged.failures
    )


async def _judged(
    request: BatchRequest, judges: Configured, numbers: list[int], outages: Outages, unkept: list[str]
) -> AsyncGenerator[tuple[int, Outcome, ReciprocityMetrics | FireCircleError], None]:
    """The outcomes as they come; while a provider is out, no further prompt is begun."""
    config = judges.config
    records = request.batch.records
    guard = PromptGuard(config, store=request.store, bank=request.bank, on_unkept=unkept.append)
    # After a pause one prompt goes first.
    chosen = [records[number] for number in (numbers[:1] if outages.pause else numbers)]
    goes_first = outages.pause is not None
    outcomes = guard.evaluate_each(
        (record.prompt for record in takewhile(lambda _: goes_first or outages.pause is None, chosen)),
        concurrency=request.options.at_once or _usual_concurrency(config),
        labels=[request.label_of(record) for record in chosen],
        record_ids=[request.batch.kept_as(record) for record in chosen],
        seating=judges.seating,
    )
    async with aclosing(outcomes):
        async for judged in outcomes:
            if isinstance(judged.outcome, ConfigError) and not isinstance(judged.outcome, PromptError):
                raise judged.outcome  # a missing key or an unknown model is the same for all prompts
            record = chosen[judged.index]
            outcome = Outcome.of_prompt(record, request.label_of(record), judged.outcome)
            yield numbers[judged.index], outcome, judged.outcome


def _usual_concurrency(config: EvaluationConfig | FireCircleConfig) -> int:
    on_this_machine = all(is_embedded(model) or is_local(model) for model in config.first_asked)
    return LOCAL_AT_ONCE if on_this_machine else HOSTED_AT_ONCE
