"""Judging a batch: one process and one event loop, so that all prompts share the providers' limits."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.budget import Budget
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.panel import Guide
from firecircle.circle.result import CallRecord, Usages
from firecircle.circle.voice import Usage
from firecircle.cli.batch.journal import (
    INTERRUPTION,
    BatchJournal,
    BatchOutcome,
    Outcome,
    batch_document,
    open_journal,
    require_known_format,
    write_rows,
)
from firecircle.cli.batch.options import BatchOptions, FailOn, field_map_of
from firecircle.cli.batch.reading import STANDARD_INPUT, Batch, read_batch
from firecircle.cli.batch.view import BatchView, summary_lines, write_junit, write_sarif
from firecircle.cli.evaluate.inputs import Sources, prompt_from
from firecircle.cli.evaluate.request import guide_for, store_for, warn_of_unsaved
from firecircle.cli.options import JudgingOptions, require_writable
from firecircle.cli.output import console_on, print_json, print_line
from firecircle.convene import rehearse
from firecircle.engine.capacity import Limits
from firecircle.engine.judging import Ledger, judge_many
from firecircle.engine.voices import JournaledVoices, Watch
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
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.request import Configured, configure_by_file, offline_request
from firecircle.store.opening import Store
from firecircle.verdict import VerdictWord
from firecircle.voices.outages import Pause

HOSTED_AT_ONCE, LOCAL_AT_ONCE = 16, 8
Judged = ReciprocityMetrics | FireCircleError


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
    with warn_of_unsaved() as unkept:
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
    ledger = _BatchLedger(request, progress, journal)
    try:
        ending = await judge_many(ledger.arms, ledger, ledger.limits)
    except asyncio.CancelledError:
        return INTERRUPTION
    except ConfigError as wrong:  # of settings that changed, or a model file that is gone
        if not progress.accounts:
            raise
        return str(wrong)
    except StoreError as broken:
        ledger.take_hurt()
        return str(broken)
    finally:
        ledger.count_rest()
    ledger.take_hurt()
    return ending.stopped


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A record of the batch by its number, with the arm that is to judge it."""

    number: int
    arms: tuple[str, ...]


class _Judges:
    """An arm: the same voices for some of the prompts."""

    def __init__(self, name: str, judges: Configured, request: BatchRequest, progress: _Progress) -> None:
        self.name, self.models = name, judges.config.named_models
        # What may be spent is the whole batch's affair, not that of each circle.
        config = judges.config.model_copy(update={"budget_tokens": None, "budget_usd": None})
        self.judges = replace(judges, config=config)
        self._request, self._progress = request, progress

    async def rehearse(self, case: _Case) -> tuple[CallRecord, ...]:
        """The calls that a prompt may take; no voice is asked."""
        return await rehearse(case.record.prompt, self.judges.config)

    async def judge(self, case: _Case, voices: JournaledVoices | None) -> Judged:
        """The judgement, or the error in its place."""
        request, record = self._request, case.record
        guard = PromptGuard(
            self.judges.config.model_copy(update={"seed": case.seed}),
            store=request.store,
            bank=request.bank,
            on_unkept=self._progress.unkept.append,
        )
        try:
            return await guard.evaluate_prompt(
                record.prompt,
                label=request.label_of(record),
                record_id=request.batch.kept_as(record),
                seating=self.judges.seating,
                batch_began=case.began,
                watched=voices.seat if voices else None,
            )
        except FireCircleError as error:
            if isinstance(error, ConfigError) and not isinstance(error, PromptError):
                raise  # a missing key or an unknown model is the same for all prompts
            return error
        except Exception as unexpected:  # noqa: BLE001 - it must not take the other prompts along
            return unexpected_error(unexpected)


@dataclass(frozen=True, slots=True)
class _Case:
    """A record with what makes a restart ask the same."""

    number: int
    record: Record
    seed: int | None
    began: float | None
    """Of rows with the same id, each keeps its own circle."""


class _BatchLedger(Ledger[_Prompt]):
    """The batch's journal, and the rows that are shown as they come."""

    def __init__(self, request: BatchRequest, progress: _Progress, journal: BatchJournal) -> None:
        self._request, self._progress, self._journal = request, progress, journal
        self._records = request.batch.records
        self._ids = Counter(record.id for record in self._records)
        self.is_journaled = journal.journal is not None
        self.spent = journal.spent
        self._hurt: dict[int, Judged] = {}
        """Prompts that lost a voice to an outage and are to be judged again."""
        self._paid: dict[int, list[Usage]] = {}
        distinct: list[Configured] = []
        self._arm_of: list[str] = []
        for judges in request.judges:
            if judges not in distinct:
                distinct.append(judges)
            self._arm_of.append(str(distinct.index(judges)))
        self.arms = [_Judges(str(n), judges, request, progress) for n, judges in enumerate(distinct)]

    @property
    def limits(self) -> Limits:
        """By the options, and the budget of the first judges; all have the same."""
        configs = [judges.config for judges in self._request.judges]
        at_once = self._request.options.at_once or max(map(_usual_concurrency, configs), default=1)
        voices = max((len(config.named_models) for config in configs), default=1)
        budget = Budget.of(configs[0]) if configs else Budget(None, None)
        return Limits(at_once * voices, at_once, budget.tokens, budget.money)

    def tasks(self, arms: Sequence[str]) -> Iterator[_Prompt]:
        """What no earlier start has judged; its outcomes are shown."""
        for number, arm in enumerate(self._arm_of):
            if arm not in arms:
                continue
            known = self._journal.judged(number)
            if known is None:
                yield _Prompt(number, (arm,))
            else:
                self._show(number, known.metrics or known.error or "")

    def case(self, task: _Prompt) -> _Case:
        """The record with its seed."""
        record = self._records[task.number]
        config = self._request.judges[task.number].config
        began = self._journal.about.began if self._ids[record.id] == 1 else None
        return _Case(task.number, record, self._journal.seed(task.number, config.seed), began)

    def voices(self, task: _Prompt, arm: str, watch: Watch) -> JournaledVoices:
        """Voices of which every answer is journaled, and counted for this prompt."""
        assert self._journal.journal is not None
        paid = self._paid.setdefault(task.number, [])

        def count(usage: Usage) -> None:
            paid.append(usage)
            watch.paid(usage)

        return JournaledVoices(
            journal=self._journal.journal,
            key=self._journal.key(task.number, self._records[task.number]),
            watch=replace(watch, paid=count),
        )

    async def judge(self, arm: Any, case: _Case, voices: JournaledVoices | None) -> Judged:
        """The judgement; one that an outage hurt is remembered, in case there will be no better one."""
        judged: Judged = await arm.judge(case, voices)
        self._hurt.pop(case.number, None)
        if voices is not None and voices.hurt:
            self._hurt[case.number] = judged
        return judged

    async def keep(self, task: _Prompt, arm: str, made: Judged) -> None:
        """Journal it and show it."""
        self._count(task.number, made)
        is_hurt = self._hurt.pop(task.number, None) is not None
        record = self._records[task.number]
        label = self._request.label_of(record)
        await asyncio.shield(self._journal.write(task.number, record, label, made))
        self._take(task.number, made, is_hurt=is_hurt)

    def paused(self, pause: Pause | None) -> None:
        """Show whom everybody waits for."""
        self._progress.pause(pause)

    def take_hurt(self) -> None:
        """Show what came of prompts whose provider stayed out."""
        for number, judged in self._hurt.items():
            self._take(number, judged, is_hurt=True)

    def count_rest(self) -> None:
        """Count what was paid for prompts that are not judged."""
        for paid in self._paid.values():
            self._progress.accounts.append(_sum(paid))

    def _count(self, number: int, made: Judged) -> None:
        paid = self._paid.pop(number, None)
        if not self.is_journaled:
            self._progress.accounts.append(_account(made))
        elif paid:
            self._progress.accounts.append(_sum(paid))

    def _take(self, number: int, judged: Judged, *, is_hurt: bool) -> None:
        self._show(number, judged if isinstance(judged, ReciprocityMetrics) else str(judged), is_hurt=is_hurt)

    def _show(self, number: int, result: ReciprocityMetrics | str, *, is_hurt: bool = False) -> None:
        record = self._records[number]
        outcome = Outcome.of_prompt(record, self._request.label_of(record), result)
        self._progress.take(self._progress.places[number], replace(outcome, lost_in_passing=is_hurt))
        self._progress.show()


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


def shared_layers(given: JudgingOptions) -> MultiNeutrosophicPrompt:
    """The layers of prompts that have none of their own."""
    if given.turn not in (None, 1):
        raise ConfigError(
            "--turn", "of a whole batch only 1 can be said", "give earlier turns in a column or with --turns"
        )
    turns = "[]" if given.turn == 1 else given.turns
    return prompt_from(Sources(given.system, given.application, "", turns))


def judge_table(source: str, options: BatchOptions, given: JudgingOptions, *, as_json: bool) -> int:
    """Judge every prompt of the batch; the exit status."""
    layers = {"system": given.system, "application": given.application, "turns": given.turns}
    for name, text in layers.items():
        if text == STANDARD_INPUT == source:
            raise ConfigError(f"--{name}", "standard input is the batch already", "use @file")
    if options.out is not None:
        require_known_format(options.out)
    for option, file in (("--junit", options.junit), ("--sarif", options.sarif)):
        if file is not None:
            require_writable(file, option)
    batch = read_batch(
        source,
        field_map_of(options.field or (), options.label_map or ()),
        options.name,
        shared_layers(given),
    )
    judges = configure_by_file(offline_request(given.asked) if given.offline else given.asked)
    if given.dry_run:
        from firecircle.cli.evaluate.dry_run import estimate_batch

        prompts = [(record.prompt, judges.config) for record in batch.records]
        return estimate_batch(batch.name, prompts, as_json=as_json)
    return judge_batch(
        BatchRequest(
            batch,
            [judges] * len(batch.records),
            store=store_for(given.save, given.store, given.label, is_read=given.bank is not None),
            label=given.label,
            bank=guide_for(given.bank, given.mode, given.store),
            options=options,
            as_json=as_json,
        )
    )
