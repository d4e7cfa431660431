"""A scan on the screen: a line that counts while it goes, then what it comes to."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from firecircle.circle.circumstances import Seating
from firecircle.circle.config import FireCircleConfig
from firecircle.cli.columns import field_map_of
from firecircle.cli.engines import EngineOptions
from firecircle.cli.evaluate.inputs import Sources, prompt_from
from firecircle.cli.options import names_in
from firecircle.cli.output import console_on, print_json, print_line, progress, shown_span
from firecircle.cli.printable import printable_line
from firecircle.cli.scan.command import ScanOptions
from firecircle.cli.trouble import INCOMPLETE, INTERRUPTED, NO_ALARM, TROUBLE, complain
from firecircle.errors import ConfigError, install_command
from firecircle.lab.scan.carrying_out import Follower, ScanProgress, carry_out, rows_in
from firecircle.lab.scan.corpus import CorpusFile, find_files, look_at
from firecircle.lab.scan.engine import Engine, Processes, usual_workers
from firecircle.lab.scan.folder import ScanFolder
from firecircle.lab.scan.summary import EscalationRequest, ScanSummary, summary_lines, write_summary
from firecircle.names import EMBEDDED_MODELS, has_neural_weights
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.request import JudgingRequest, configured_by_file
from firecircle.telling.words import counted

FRAMES_PER_SECOND = 4
SECONDS_BETWEEN_LINES = 5.0


def scan_corpus(corpus: Sequence[str], given: ScanOptions) -> int:
    """Screen the corpus and print what it comes to; the exit status."""
    if find_spec("duckdb") is None:
        raise ConfigError("scan", "needs the extra `lab`", install_command("lab"))
    console = console_on(sys.stderr)
    turns = "[]" if given.turn == 1 else None
    shared = prompt_from(Sources(given.system, given.application, "", turns))
    config = _circle(given)
    escalation = _escalation(given)
    with progress("looking at the corpus, bytes read") as show:
        files = look_at(find_files(corpus), field_map_of(given.field or (), given.label_map or ()), show)
    folder = ScanFolder(Path(given.out))
    if note := folder.begin(files, config, shared, given.shard_rows, anew=given.anew):
        print_line(console, f"note: {note}")
    with folder.locked():
        _print_beginning(console, folder, len(files))
        engine = _engine(given)
        try:
            with _followed(console) as follow:
                summary, done = carry_out(
                    folder, files, config, shared, given.shard_rows, engine, top=given.top, follow=follow
                )
            if escalation is not None:
                summary = _escalated(folder, files, shared, config, escalation, given, summary, console)
        except KeyboardInterrupt:
            kept = counted(rows_in(folder), "row")
            complain(f"interrupted; {kept} are kept, and this goes on: {_same_command()}")
            return INTERRUPTED
    _print_outcome(folder, summary, done, as_json=given.as_json)
    if summary.broken_files:
        return TROUBLE
    escalated = summary.escalation
    return INCOMPLETE if escalated and (escalated.stopped or escalated.failed) else NO_ALARM


def _escalation(given: ScanOptions) -> EscalationRequest | None:
    """What the options say of an escalation; no money is spent without a limit."""
    if given.escalate is None:
        for option, value in (("--budget", given.budget), ("--budget-tokens", given.budget_tokens)):
            if value is not None:
                raise ConfigError(option, "belongs to --escalate", "add that")
        return None
    low, high = given.band
    if not 0 <= low < high <= 1.0:
        raise ConfigError("--band", f"{low:g} to {high:g} is no band within 0 and 1")
    if given.budget is None and given.budget_tokens is None:
        raise ConfigError("--escalate", "needs a limit", "give --budget USD or --budget-tokens N")
    models = names_in(given.escalate, "--escalate")
    return EscalationRequest(models, (low, high), given.budget, given.budget_tokens)


def _escalated(
    folder: ScanFolder,
    files: tuple[CorpusFile, ...],
    shared: MultiNeutrosophicPrompt,
    config: FireCircleConfig,
    request: EscalationRequest,
    given: ScanOptions,
    summary: ScanSummary,
    console: Console,
) -> ScanSummary:
    """The summary with what the circle of the user's voices made of the uncertain band."""
    from firecircle.cli.lab.running import followed
    from firecircle.lab.scan.escalation import escalate

    clusters = EngineOptions(given.engine, given.address).clusters(given.workers or usual_workers())
    escalating = escalate(
        folder, files, shared, request, config.alarm_threshold, lambda run: followed(console), clusters
    )
    whole = summary.model_copy(update={"escalation": asyncio.run(escalating)})
    write_summary(folder, whole)
    return whole


def _engine(given: ScanOptions) -> Engine:
    workers = given.workers or usual_workers()
    if not EngineOptions(given.engine, given.address).is_ray:
        return Processes(workers)
    from firecircle.lab.scan.ray_engine import RayData

    return RayData(workers, given.address)


def _circle(given: ScanOptions) -> FireCircleConfig:
    """The embedded circle, under the settings file and the options."""
    models = EMBEDDED_MODELS if given.neural else EMBEDDED_MODELS[:2]
    if given.neural and not has_neural_weights():
        raise ConfigError(
            "--neural", "its numbers are not here", "`firecircle local fetch neural` brings them"
        )
    request = JudgingRequest(
        settings={"alarm_threshold": given.threshold},
        by_default=models,
        seating=Seating.of(models, "default"),
        written={"alarm_threshold": "--threshold"},
    )
    config = configured_by_file(request).config
    assert isinstance(config, FireCircleConfig)
    return config


def _same_command() -> str:
    return printable_line(shlex.join(["firecircle", *sys.argv[1:]]))


def _print_beginning(console: Console, folder: ScanFolder, files: int) -> None:
    kept = rows_in(folder)
    going_on = f", going on after {counted(kept, 'row')}" if kept else ""
    print_line(console, f"scan of {counted(files, 'file')} into {printable_line(str(folder.path))}{going_on}")


@contextmanager
def _followed(console: Console) -> Iterator[Follower]:
    latest: list[ScanProgress] = []
    if console.is_terminal:

        def line() -> Text:
            return Text(
                _progress_line(latest[-1]) if latest else "", "dim", no_wrap=True, overflow="ellipsis"
            )

        with Live(get_renderable=line, console=console, refresh_per_second=FRAMES_PER_SECOND, transient=True):
            yield lambda now: latest.append(now) if not latest else None
        return
    printed_at = time.monotonic() - SECONDS_BETWEEN_LINES + 1

    def follow(now: ScanProgress) -> None:
        nonlocal printed_at
        if time.monotonic() - printed_at >= SECONDS_BETWEEN_LINES:
            printed_at = time.monotonic()
            print_line(console, _progress_line(now))

    yield follow


def _progress_line(now: ScanProgress) -> str:
    total = "" if now.total is None else f" of about {now.total:,}"
    parts = [f"{now.done:,}{total} rows", f"{now.seconds:.0f} s"]
    if now.pace:
        parts.append(f"{now.pace:,.0f} a second")
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
        print_line(console, f"{rows} in {seconds:.1f} s, {done.screened / seconds:,.0f} a second")
    print_line(console, f"The loudest: {printable_line(str(folder.top))}")
