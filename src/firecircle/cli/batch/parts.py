"""A batch that goes into a folder of parts: a line that counts while it goes, then what it comes to."""

from __future__ import annotations

import asyncio
import multiprocessing
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from pathlib import Path

from rich.console import Console
from rich.text import Text

from firecircle.circle.config import FireCircleConfig
from firecircle.cli.batch.journal import FAILING
from firecircle.cli.batch.judging import shared_layers
from firecircle.cli.batch.options import BatchOptions, EngineOptions, PartOptions, field_map_of
from firecircle.cli.options import JudgingOptions, names_in
from firecircle.cli.output import console_on, print_json, print_line, progress, shown_progress, shown_span
from firecircle.cli.trouble import ALARM, INCOMPLETE, INTERRUPTED, NO_ALARM, TROUBLE, complain
from firecircle.engine.workers import Processes, Workers, usual_workers
from firecircle.errors import ConfigError
from firecircle.lab.scan.corpus import CorpusFile, ScanFolder, find_files, look_at
from firecircle.lab.scan.escalation import EscalationRequest
from firecircle.lab.scan.screening import Follower, ScanProgress, Screener, ScreeningJob, carry_out, rows_in
from firecircle.lab.scan.summary import ScanSummary, summary_lines, write_summary
from firecircle.names import is_embedded
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.request import configure_by_file, offline_request
from firecircle.telling.safe_text import printable_line
from firecircle.telling.words import counted

PART_ROWS, TOP = 2000, 100
UNSURE = (0.3, 0.7)
"""The band of an escalation that names none."""
ONE_TABLE = ("name", "raw_csv", "junit", "sarif", "at_once", "label", "save", "store", "bank", "dry_run")
"""Options that parts have no use for."""


def judge_in_parts(
    corpus: Sequence[str],
    many: BatchOptions,
    given: JudgingOptions,
    parts: PartOptions,
    *,
    as_json: bool,
) -> int:
    """Judge the corpus and print what it comes to; the exit status."""
    for options in (many, given):
        for option in fields(options):
            if option.name in ONE_TABLE and getattr(options, option.name) not in (None, False):
                name = option.name.replace("_", "-")
                raise ConfigError(f"--{name}", "is not for a folder of parts", "leave it out")
    console = console_on(sys.stderr)
    shared, config = shared_layers(given), _readers(given)
    escalation = _escalation(given, parts)
    engine = EngineOptions(parts.engine)
    with progress("looking at the corpus, bytes read") as show:
        files = look_at(find_files(corpus), field_map_of(many.field or (), many.label_map or ()), show)
    folder = ScanFolder(Path(str(many.out)))
    rows = parts.part_rows or PART_ROWS
    if note := folder.begin(files, config, shared, rows, restart=parts.restart):
        print_line(console, f"note: {note}")

    async def judged(follow: Follower) -> tuple[ScanSummary, ScanProgress]:
        job = ScreeningJob(files, config, shared, str(folder.shards.resolve()))
        async with _workers(engine, parts.workers or usual_workers(), job) as (workers, count):
            return await carry_out(folder, files, config, rows, workers, top=TOP, follow=follow, judged=count)

    with folder.locked():
        _print_beginning(console, folder, len(files))
        try:
            with shown_progress(console, _view, _progress_line, first_after=1.0) as follow:
                summary, done = asyncio.run(judged(follow))
            if escalation is not None:
                threshold, workers = config.alarm_threshold, parts.workers or usual_workers()
                summary = _escalate(
                    folder, files, shared, escalation, threshold, engine, workers, summary, console
                )
        except KeyboardInterrupt:
            kept = counted(rows_in(folder), "row")
            complain(f"interrupted; {kept} are saved; continue with: {_same_command()}")
            return INTERRUPTED
    _print_outcome(folder, summary, done, as_json=as_json)
    if many.fail_on and any(summary.verdicts.get(word) for word in FAILING[many.fail_on]):
        return ALARM
    if summary.broken_files:
        return TROUBLE
    escalated = summary.escalation
    return INCOMPLETE if escalated and (escalated.stopped or escalated.failed) else NO_ALARM


@asynccontextmanager
async def _workers(
    engine: EngineOptions, count: int, job: ScreeningJob
) -> AsyncIterator[tuple[Workers, Callable[[], int]]]:
    """Who judges, and what tells how many rows they have judged."""
    if engine.is_ray:
        from firecircle.lab.cluster import ray_workers

        async with ray_workers(Screener, (job,), count, engine.address) as actors:
            yield actors, lambda: 0
        return
    rows = multiprocessing.get_context("spawn").Value("q", 0)
    with Processes(count, Screener, job, rows) as processes:
        yield processes, lambda: rows.value


def _escalation(given: JudgingOptions, parts: PartOptions) -> EscalationRequest | None:
    """What the options say of an escalation; no money is spent without a limit."""
    asked = given.asked.asked
    usd, tokens = asked.get("budget_usd"), asked.get("budget_tokens")
    if parts.escalate is None:
        for option, value in (
            ("--budget-usd", usd),
            ("--set budget_tokens", tokens),
            ("--band", parts.band),
        ):
            if value is not None:
                raise ConfigError(option, "belongs to --escalate in a folder of parts", "add that")
        return None
    low, high = parts.band or UNSURE
    if not 0 <= low < high <= 1.0:
        raise ConfigError("--band", f"{low:g} to {high:g} is not a band within 0 and 1")
    if usd is None and tokens is None:
        raise ConfigError("--escalate", "needs a limit", "give --budget-usd USD or --set budget_tokens=N")
    models = names_in(parts.escalate, "--escalate")
    checked = configure_by_file(given.asked).config  # reports invalid numbers here
    return EscalationRequest(models, (low, high), checked.budget_usd, checked.budget_tokens)


def _escalate(
    folder: ScanFolder,
    files: tuple[CorpusFile, ...],
    shared: MultiNeutrosophicPrompt,
    request: EscalationRequest,
    threshold: float,
    engine: EngineOptions,
    workers: int,
    summary: ScanSummary,
    console: Console,
) -> ScanSummary:
    """The summary with what the circle of the user's voices made of the uncertain band."""
    from firecircle.cli.lab.running import follow
    from firecircle.lab.scan.escalation import escalate

    escalating = escalate(folder, files, shared, request, threshold, lambda run: follow(console))
    whole = summary.model_copy(update={"escalation": asyncio.run(escalating)})
    write_summary(folder, whole)
    return whole


def _readers(given: JudgingOptions) -> FireCircleConfig:
    """The circle of built-in readers, under the settings file and the options."""
    asked = given.asked
    models = asked.asked.get("models")
    if models and not all(map(is_embedded, models)):
        raise ConfigError(
            "--models",
            "only the built-in readers judge into a folder of parts",
            "name embedded: voices and --escalate A,B for others, or write --out FILE.jsonl",
        )
    config = configure_by_file(asked if models else offline_request(asked)).config
    if not isinstance(config, FireCircleConfig):
        raise ConfigError("--mode", "a folder of parts is judged by circles", "leave it out")
    return config.model_copy(update={"budget_usd": None, "budget_tokens": None})


def _same_command() -> str:
    return printable_line(shlex.join(["firecircle", *sys.argv[1:]]))


def _print_beginning(console: Console, folder: ScanFolder, files: int) -> None:
    kept = rows_in(folder)
    going_on = f", going on after {counted(kept, 'row')}" if kept else ""
    print_line(
        console, f"batch of {counted(files, 'file')} into {printable_line(str(folder.path))}{going_on}"
    )


def _view(now: ScanProgress) -> Text:
    return Text(_progress_line(now), "dim", no_wrap=True, overflow="ellipsis")


def _progress_line(now: ScanProgress) -> str:
    total = "" if now.total is None else f" of about {now.total:,}"
    parts = [f"{now.done:,}{total} rows", f"{now.seconds:.0f} s"]
    if now.pace:
        parts.append(f"{now.pace:,.0f} per second")
        left = 0 if now.total is None else max(0, now.total - now.done)
        if left:
            parts.append(f"{shown_span(left / now.pace)} left")
    parts += [f"{word.replace('_', ' ')} {count:,}" for word, count in sorted(now.verdicts.items())]
    return " · ".join(parts)


def _print_outcome(folder: ScanFolder, summary: ScanSummary, done: ScanProgress, *, as_json: bool) -> None:
    files = {"shards": str(folder.shards), "top": str(folder.top), "summary": str(folder.summary)}
    pace = {"rows": done.screened, "seconds": round(done.seconds, 3), "rows_before": done.before}
    if as_json:
        print_json({**files, "this_time": pace, **summary.model_dump(mode="json")})
        return
    console = console_on(sys.stdout)
    for line in summary_lines(summary):
        print_line(console, printable_line(line))
    if done.screened:
        rows, seconds = counted(done.screened, "row"), done.seconds
        print_line(console, f"{rows} in {seconds:.1f} s, {done.screened / seconds:,.0f} per second")
    print_line(console, f"The loudest: {printable_line(str(folder.top))}")
