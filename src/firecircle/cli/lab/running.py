"""A run on the screen: a live table or plain lines while it goes, then its outcome and its report."""

from __future__ import annotations

import asyncio
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from firecircle.cli.evaluate.storage import store_for
from firecircle.cli.lab.view import arms_table, show_outcome
from firecircle.cli.output import console_on, pause_line, print_json, print_line
from firecircle.cli.printable import printable_line
from firecircle.cli.trouble import INCOMPLETE, INTERRUPTED, complain
from firecircle.errors import StoreError
from firecircle.lab.redteam.outcomes import is_redteam, redteam_of
from firecircle.lab.runs.folder import RunFolder, register_run
from firecircle.lab.runs.live import A_MOMENT, LOCKED, on_thread
from firecircle.lab.runs.runner import Follower
from firecircle.lab.runs.starting import complete
from firecircle.lab.runs.tally import Tally
from firecircle.telling.safe_text import shortened
from firecircle.telling.words import counted
from firecircle.voices.outages import Pause

if TYPE_CHECKING:
    from firecircle.cli.batch.options import EngineOptions
    from firecircle.lab.report.page import ReportFiles

FRAMES_PER_SECOND = 4
SECONDS_BETWEEN_LINES = 5.0
DONE, STOPPED = 0, 1
TONE_SIGNS = {"gain": "+", "loss": "-", "warning": "!", "plain": " "}
"""Before a sentence: it shows a gain, no gain, or calls for care."""
FEW = 5
"""Prompts judged wrongly that are listed on the screen; the report has more."""


def carry_out(
    folder: RunFolder,
    *,
    save: bool | None,
    as_json: bool,
    retry_failed: bool = False,
    validated: bool = False,
    reported: bool = False,
    engine: EngineOptions | None = None,
) -> int:
    """Carry the run out and print its outcome, validation and report as asked; the exit status."""
    console = console_on(sys.stderr)

    @contextmanager
    def following(run: RunFolder) -> Iterator[Follower]:
        _print_beginning(console, run)
        with follow(console) as follower:
            yield follower

    store = store_for(save, None, None)
    _register(folder)  # reported at the end, when the store may be free again
    try:
        with store or nullcontext():
            state = asyncio.run(
                complete(
                    folder,
                    following,
                    retry_failed=retry_failed,
                    store=store,
                    embedded_too=save is True,
                    clusters=engine.clusters(folder.plan.workers) if engine else None,
                )
            )
    except KeyboardInterrupt:
        complain("interrupted; the same command goes on where this one stopped")
        return INTERRUPTED
    unlisted = _register(folder)
    validation = None
    if validated and folder.state == "finished":
        from firecircle.lab.validation import validate

        validation = validate(folder)
    redteam = None
    if is_redteam(folder.plan) and folder.state == "finished":
        redteam = redteam_of(folder)
    with_report = reported and folder.state == "finished"
    report = report_data(folder) if with_report and as_json else None
    show_outcome(folder, state, validation, redteam, report, as_json=as_json)
    if with_report and not as_json:
        report_on(folder, None, as_json=False)
    if state.table_rewritten:
        table = printable_line(str(folder.records))
        print(
            f"warning: {table} was changed since it was written; rewritten from the journal", file=sys.stderr
        )
    if state.not_stored:
        print(f"warning: not saved: {printable_line(state.not_stored)}", file=sys.stderr)
    elif unlisted:
        print(f"warning: not listed: {printable_line(unlisted)}", file=sys.stderr)
    if state.stopped:
        return STOPPED
    has_failures = state.hurt_in_passing or any(arm.failed for arm in state.tally.arms.values())
    return INCOMPLETE if has_failures else DONE


def _register(folder: RunFolder) -> str | None:
    """Register the run in the store; if that fails, why. A store that cannot be used costs no run, and one
    that is locked only a moment."""
    try:
        on_thread(lambda: register_run(folder)).result(A_MOMENT)
    except StoreError as trouble:
        return str(trouble)
    except TimeoutError:
        return f"{LOCKED}; `firecircle lab run {folder.path}` lists the run later"
    return None


def _print_beginning(console: Console, run: RunFolder) -> None:
    print_line(console, f"run {printable_line(run.about.run_id)} in {printable_line(str(run.path))}")
    begun_with, now = run.about.versions.get("firecircle"), version("firecircle")
    if begun_with != now:
        print_line(
            console, f"begun with firecircle {begun_with}, going on with {now}: what is said may differ"
        )
    for dataset in run.about.census.datasets:
        name = printable_line(dataset.name, 60)
        print_line(
            console,
            f"{name}: {dataset.records:,} records ({dataset.attacks:,} attacks, {dataset.benign:,} benign,"
            f" {dataset.unlabelled:,} without a label)",
        )
        if dataset.bad_rows:
            unusable = (
                "row cannot be used, and is" if dataset.bad_rows == 1 else "rows cannot be used, and are"
            )
            print_line(console, f"{name}: {dataset.bad_rows:,} {unusable} left out:")
            for why in dataset.first_bad_rows:
                print_line(console, f"  {printable_line(why, 200)}")


def follow(console: Console) -> AbstractContextManager[Follower]:
    """Whoever shows how far a run is: a table that changes on a terminal, else a line now and then."""
    return _live(console) if console.is_terminal else _lines(console)


@contextmanager
def _live(console: Console) -> Iterator[Follower]:
    latest: list[Tally] = []
    started = time.monotonic()

    def view() -> RenderableType:
        return _live_view(latest[-1], console.width, time.monotonic() - started) if latest else Text("")

    with Live(get_renderable=view, console=console, refresh_per_second=FRAMES_PER_SECOND, transient=True):

        def show(tally: Tally) -> None:
            latest[:] = [tally]

        yield show


def _live_view(tally: Tally, width: int, seconds: float) -> RenderableType:
    spending = Text(_spending(tally, seconds), style="dim")
    if tally.pause is None:
        return Group(arms_table(tally, width), spending)
    return Group(arms_table(tally, width), spending, Text(pause_line(tally.pause), style="yellow"))


def _spending(tally: Tally, seconds: float) -> str:
    parts = [f"{tally.done:,} of {tally.total * len(tally.arms):,} judgements", f"{seconds:.0f} s"]
    if tally.calls_allowed:
        under_way = f"{tally.calls_under_way} under way, {tally.calls_allowed} allowed"
        parts.append(f"{counted(tally.calls, 'call')} made, {under_way}")
    if tally.spent_tokens:
        parts.append(f"{tally.spent_tokens:,} tokens, ${tally.spent_usd:.4f} spent")
    if tally.workers_lost:
        parts.append(f"{counted(tally.workers_lost, 'worker')} lost and replaced")
    if tally.retries:
        parts.append(f"{tally.retries:,} retries, the last: {printable_line(tally.notes[-1], 60)}")
    return " · ".join(parts)


@contextmanager
def _lines(console: Console) -> Iterator[Follower]:
    printed_at = started = time.monotonic()

    pause: Pause | None = None

    def follow(tally: Tally) -> None:
        nonlocal printed_at, pause
        now = time.monotonic()
        if tally.pause != pause:
            pause = tally.pause
            print_line(console, pause_line(pause) if pause else "going on")
        if now - printed_at >= SECONDS_BETWEEN_LINES:
            printed_at = now
            print_line(console, _spending(tally, now - started))

    yield follow


def report_on(folder: RunFolder, out: Path | None, *, as_json: bool) -> int:
    """Write the report and print what it says; the exit status."""
    if as_json:
        print_json({"run_id": folder.about.run_id, **report_data(folder, out)})
    else:
        _print_sentences(_write_report(folder, out))
    return 0


def _write_report(folder: RunFolder, out: Path | None) -> ReportFiles:
    from firecircle.lab.report.page import write_report

    folder.require_finished()
    warn_of_damage(folder)
    return asyncio.run(write_report(folder, out))


def warn_of_damage(folder: RunFolder) -> None:
    """Say what of a finished run is not as it was left; its figures come from a table that is."""
    for line in folder.damage.lines:
        print(f"warning: {printable_line(line)}", file=sys.stderr)


def report_data(folder: RunFolder, out: Path | None = None) -> dict[str, object]:
    """Write the report; where it is and what it says, for `--json`."""
    written = _write_report(folder, out)
    files = {field: str(getattr(written, field)) for field in ("page", "figures", "records")}
    return {
        **files,
        "pictures": [str(picture) for picture in written.pictures],
        "sentences": [sentence.model_dump(mode="json") for sentence in written.sentences],
        "verdicts": [table.model_dump(mode="json") for table in written.verdicts],
    }


def _print_sentences(written: ReportFiles) -> None:
    console = console_on(sys.stdout)
    width = console.width if console.is_terminal else 10_000
    for sentence in written.sentences:
        line = f"{TONE_SIGNS[sentence.tone]} {printable_line(sentence.text)}"
        print_line(console, textwrap.fill(line, width, subsequent_indent="  ", break_on_hyphens=False))
    for table in written.verdicts:
        print_line(console, "")
        more = f", {FEW} of them" if table.total > FEW else ""
        print_line(console, f"{table.title} of {printable_line(table.arm)}: {table.total:,}{more}")
        for row in table.rows[:FEW]:
            words = "" if row.words is None else f"  {printable_line(row.words)}"
            line = f"  F {table.figure(row.falsehood)}  {printable_line(row.record_id)}{words}"
            print_line(console, shortened(line, width))
    print_line(console, f"\nreport: {printable_line(str(written.page))}")
