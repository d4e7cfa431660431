"""Judging a batch: one process and one event loop, so that all prompts share the providers' limits."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.budget import Budget
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.panel import Guide
from firecircle.circle.result import Usages
from firecircle.circle.voice import Usage
from firecircle.cli.evaluate.batch.ci import write_junit, write_sarif
from firecircle.cli.evaluate.batch.files import batch_document, write_rows
from firecircle.cli.evaluate.batch.journal import BatchJournal, open_journal
from firecircle.cli.evaluate.batch.options import BatchOptions, FailOn
from firecircle.cli.evaluate.batch.outcome import INTERRUPTION, BatchOutcome, Outcome
from firecircle.cli.evaluate.batch.reading import Batch
from firecircle.cli.evaluate.batch.spending import Amount, BatchBudget, with_budget
from firecircle.cli.evaluate.batch.view import BatchView, summary_lines
from firecircle.cli.evaluate.storage import warned_when_not_kept
from firecircle.cli.output import console_on, print_json, print_line
from firecircle.convene import Watcher
from firecircle.engine.capacity import CallCapacity
from firecircle.engine.voices import JournaledVoices, judge_unhurt
from firecircle.errors import (
    ConfigError,
    EvaluationError,
    FireCircleError,
    PromptError,
    StoreError,
    unexpected_error,
)
from firecircle.guard import PromptGuard
from firecircle.lab.datasets import Record
from firecircle.metrics import ReciprocityMetrics
from firecircle.names import EvaluationMode, is_embedded, is_local
from firecircle.request import Configured
from firecircle.settings import current_settings
from firecircle.store.opening import Store
from firecircle.verdict import VerdictWord
from firecircle.voices.outages import Outages, Pause, StillOut

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
        with (
            open_journal(batch, request.judges, request.store, request.bank) as journal,
            request.store or nullcontext(),
            view.open(),
        ):
            stopped = asyncio.run(_judge_all(request, progress, journal))
            progress.show_rest()
            journal.is_finished = not stopped and not any(row.lost_in_passing for row in progress.shown)
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


async def _judge_all(request: BatchRequest, progress: _Progress, journal: BatchJournal) -> str | None:
    """Judge every record; why it ended before the last one, if it did."""
    progress.show()
    progress.accounts += journal.paid_before()
    try:
        for judges, numbers in _by_judges(request.judges):
            outages = Outages(current_settings().waiting, progress.pause)
            judging = _Judging(request, judges, progress, journal, outages)
            if stopped := await judging.judge(numbers):
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


class _Judging:
    """Judges the prompts that the same voices judge; each outcome is journaled before it is shown."""

    def __init__(
        self,
        request: BatchRequest,
        judges: Configured,
        progress: _Progress,
        journal: BatchJournal,
        outages: Outages,
    ) -> None:
        self._request, self._judges, self._progress = request, judges, progress
        self._journal, self._outages = journal, outages
        self._records = request.batch.records
        self._ids = Counter(record.id for record in self._records)
        self._hurt: dict[int, ReciprocityMetrics | FireCircleError] = {}
        """Prompts that lost a voice to an outage and are to be judged again."""
        self._at_once = request.options.at_once or _usual_concurrency(judges.config)
        self._capacity = CallCapacity(self._at_once * len(judges.config.named_models))

    async def judge(self, numbers: list[int]) -> str | None:
        """Judge these prompts within the budget; why it ended early."""
        left = [number for number in numbers if not self._is_known(number)]
        budget = await BatchBudget.of(self._judges, self._records, left)
        try:
            while left:
                some, part = budget.fitting(left, self._progress.spent)
                if not some:
                    return budget.shortage(left[0], self._progress.spent)
                with self._outages.noticed():
                    await self._judge_some(some, part)
                left = left[len(some) :]
        except (StillOut, StoreError) as ended:
            for number, judged in self._hurt.items():
                self._take(number, judged, is_hurt=True)
            return str(ended)
        return None

    def _is_known(self, number: int) -> bool:
        """Whether an earlier start judged this prompt; its outcome is shown then."""
        known = self._journal.judged(number)
        if known is None:
            return False
        self._show(number, known.metrics or known.error or "")
        return True

    async def _judge_some(self, numbers: Sequence[int], part: Budget) -> None:
        room = asyncio.Semaphore(self._at_once)

        async def judge_one(number: int) -> None:
            try:
                await self._judge_one(number, part)
            finally:
                room.release()

        try:
            async with asyncio.TaskGroup() as begun:
                for number in numbers:
                    await room.acquire()
                    begun.create_task(judge_one(number))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None  # an error that ends the batch; the others say the same

    async def _judge_one(self, number: int, part: Budget) -> None:
        record, journal = self._records[number], self._journal.journal
        if journal is None:
            judged = await self._judged(number, part, None)
            self._progress.accounts.append(_account(judged))
            self._take(number, judged, is_hurt=False)
            return
        tries: list[JournaledVoices] = []
        paid: list[Usage] = []

        async def judge(voices: JournaledVoices) -> ReciprocityMetrics | FireCircleError:
            # Calls that were lost do not appear in a further try, and count all the same.
            lost = [call.usage for earlier in tries for _, _, call in earlier.withheld]
            tries.append(voices)
            judged = await self._judged(number, _less(part, Amount.taken(_sum(lost))), voices.seat)
            self._hurt.pop(number, None)
            if voices.hurt:
                self._hurt[number] = judged
            return judged

        seat = partial(
            JournaledVoices,
            journal=journal,
            key=self._journal.key(number, record),
            capacity=self._capacity,
            outages=self._outages,
            paid=paid.append,
        )
        try:
            judged = await judge_unhurt(seat, judge)
        finally:
            if paid:
                self._progress.accounts.append(_sum(paid))
        is_hurt = self._hurt.pop(number, None) is not None
        await asyncio.shield(self._journal.write(number, record, self._request.label_of(record), judged))
        self._take(number, judged, is_hurt=is_hurt)

    async def _judged(
        self, number: int, part: Budget, watched: Watcher | None
    ) -> ReciprocityMetrics | FireCircleError:
        request, record = self._request, self._records[number]
        judges = with_budget(self._judges, part)
        seed = self._journal.seed(number, judges.config.seed)
        guard = PromptGuard(
            judges.config.model_copy(update={"seed": seed}),
            store=request.store,
            bank=request.bank,
            on_unkept=self._progress.unkept.append,
        )
        try:
            return await guard.evaluate_prompt(
                record.prompt,
                label=request.label_of(record),
                record_id=request.batch.kept_as(record),
                seating=judges.seating,
                # Of rows with the same id, each keeps its own circle.
                batch_began=self._journal.about.began if self._ids[record.id] == 1 else None,
                watched=watched,
            )
        except FireCircleError as error:
            if isinstance(error, ConfigError) and not isinstance(error, PromptError):
                raise  # a missing key or an unknown model is the same for all prompts
            return error
        except Exception as unexpected:  # noqa: BLE001 - it must not take the other prompts along
            return unexpected_error(unexpected)

    def _take(self, number: int, judged: ReciprocityMetrics | FireCircleError, *, is_hurt: bool) -> None:
        self._show(number, judged if isinstance(judged, ReciprocityMetrics) else str(judged), is_hurt=is_hurt)

    def _show(self, number: int, result: ReciprocityMetrics | str, *, is_hurt: bool = False) -> None:
        record = self._records[number]
        outcome = Outcome.of_prompt(record, self._request.label_of(record), result)
        self._progress.take(self._progress.places[number], replace(outcome, lost_in_passing=is_hurt))
        self._progress.show()


def _less(part: Budget, taken: Amount) -> Budget:
    return Budget(
        None if part.tokens is None else max(0, part.tokens - taken.tokens),
        None if part.money is None else max(0.0, part.money - taken.usd),
    )


def _sum(usages: Sequence[Usage]) -> Usages:
    prices = [usage.cost_usd for usage in usages if usage.cost_usd is not None]
    return Usages(
        calls=len(usages),
        tokens_in=sum(usage.tokens_in or 0 for usage in usages),
        tokens_out=sum(usage.tokens_out or 0 for usage in usages),
        cost_usd=sum(prices) if prices else None,
        estimated_tokens=sum(usage.estimated_tokens for usage in usages),
        estimated_usd=sum(usage.estimated_usd for usage in usages),
    )


def _account(judged: ReciprocityMetrics | FireCircleError) -> Usages:
    """What a judgement took, also one that failed."""
    known = judged.accounting if isinstance(judged, ReciprocityMetrics | EvaluationError) else None
    return known.total if known else Usages()


def _usual_concurrency(config: EvaluationConfig | FireCircleConfig) -> int:
    on_this_machine = all(is_embedded(model) or is_local(model) for model in config.first_asked)
    return LOCAL_AT_ONCE if on_this_machine else HOSTED_AT_ONCE
