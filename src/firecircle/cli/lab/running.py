"""A run on the screen: a live table or plain lines while it goes, then its outcome and its report."""

from __future__ import annotations

import asyncio
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from firecircle.cli.evaluate.request import store_for
from firecircle.cli.output import (
    console_on,
    figures_table,
    pause_line,
    print_all,
    print_json,
    print_line,
    shown_progress,
    shown_span,
    table_console,
)
from firecircle.cli.trouble import INCOMPLETE, INTERRUPTED, complain
from firecircle.errors import StoreError
from firecircle.lab.redteam import is_redteam, redteam_of
from firecircle.lab.runs.cases import Tally
from firecircle.lab.runs.folder import RunFolder, register_run
from firecircle.lab.runs.live import A_MOMENT, LOCKED, on_thread
from firecircle.lab.runs.runner import Follower
from firecircle.lab.runs.starting import complete
from firecircle.telling.safe_text import printable_line, shortened
from firecircle.telling.words import counted, time_text
from firecircle.voices.outages import Pause

if TYPE_CHECKING:
    from firecircle.cli.batch.options import EngineOptions
    from firecircle.lab.estimate import Estimate
    from firecircle.lab.plan import Plan
    from firecircle.lab.redteam import RedTeam, Share
    from firecircle.lab.report.page import ReportFiles
    from firecircle.lab.runs.cases import ArmTally
    from firecircle.lab.runs.runner import RunState
    from firecircle.lab.validation import Validation

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


@contextmanager
def follow(console: Console) -> Iterator[Follower]:
    """Whoever shows how far a run is: a table that changes on a terminal, else a line now and then."""
    started = time.monotonic()
    pause: Pause | None = None

    def view(tally: Tally) -> RenderableType:
        return _live_view(tally, console.width, time.monotonic() - started)

    def line(tally: Tally) -> str:
        return _spending(tally, time.monotonic() - started)

    with shown_progress(console, view, line) as show:

        def shown(tally: Tally) -> None:
            nonlocal pause
            if tally.pause != pause and not console.is_terminal:
                print_line(console, pause_line(tally.pause) if tally.pause else "going on")
            pause = tally.pause
            show(tally)

        yield shown


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


WIDE = 100
"""Columns of a terminal that has room for intervals."""
ATTACKS_MEAN = (
    "F: mean falsehood of the verdicts without and with the attack. Turned: verdicts that went over to the"
    " side the attack wants, of those on the other. Swayed: the same of single voices. Obeyed: how often a"
    " voice did what a text asks of evaluators."
)


def _money(usd: float | None) -> str:
    return "unknown" if usd is None else f"${usd:,.4f}" if usd else "free"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


# -- before a run --------------------------------------------------------------------------------------


def show_estimate(estimate: Estimate, plan: Plan, *, as_json: bool) -> None:
    """What each arm may take, and all together."""
    if as_json:
        total = {"cost_usd": estimate.cost_usd, "tokens": estimate.tokens}
        print_json({**estimate.model_dump(mode="json"), "total": total, "digest": plan.digest})
        return
    console = table_console()
    table = figures_table(("records", "calls", "tokens in", "tokens out", "price", "time"))
    for arm in estimate.arms:
        table.add_row(
            shortened(printable_line(arm.arm), max(12, console.width - 66)),
            f"{arm.records:,}",
            f"{arm.calls:,}",
            f"{arm.tokens_in:,}",
            f"{arm.tokens_out:,}",
            _money(arm.cost_usd),
            shown_span(arm.seconds),
        )
    console.print(table)
    console.print(f"\nall, at most: {estimate.tokens:,} tokens, {_money(estimate.cost_usd)}")
    if estimate.over_budget:
        console.print(
            Text(f"over budget: {estimate.over_budget}; the run would stop on the way", "bold yellow")
        )
    notes = [
        f"Nothing was sent. {estimate.rehearsed:,} records were rehearsed with every round that could be"
        " held; a circle that agrees early holds fewer.",
        "Time: embedded arms as measured on this machine;"
        f" others take {estimate.seconds_per_call:g} s a call, {plan.concurrency.calls} at once.",
    ]
    notes.extend(
        f"{printable_line(dataset.name, 60)}: {dataset.bad_rows:,} rows cannot be used, the first is"
        f" {printable_line(dataset.first_bad_rows[0], 120)}."
        for dataset in estimate.census.datasets
        if dataset.bad_rows
    )
    for note in notes:
        console.print(Text(note, style="dim"), soft_wrap=not console.is_terminal)


# -- during and after a run ------------------------------------------------------------------------------


def arms_table(tally: Tally, width: int) -> Table:
    """How far each arm is and what it shows so far."""
    table = figures_table(("judged", "failed", "recall", "false alarms", "calls", "tokens", "spent"))
    for name, arm in tally.arms.items():
        table.add_row(
            shortened(printable_line(name), max(12, width - 72)),
            f"{arm.records:,}/{tally.total:,}",
            f"{arm.failed:,}" if arm.failed else "",
            _of(arm.found, arm.attacks),
            _of(arm.false_alarms, arm.benign),
            f"{arm.calls + arm.open_calls:,}",
            f"{arm.tokens + arm.open_tokens:,}",
            "" if arm.cost_usd is None else _money(arm.cost_usd),
        )
    return table


def _of(count: int, total: int) -> str:
    return f"{count / total:.0%} of {total:,}" if total else ""


def show_outcome(
    folder: RunFolder,
    state: RunState,
    validation: Validation | None,
    redteam: RedTeam | None,
    report: Mapping[str, object] | None,
    *,
    as_json: bool,
) -> None:
    """How a run was left, and what to do next."""
    finished = folder.state == "finished"
    if as_json:
        print_json(
            {
                "run_id": folder.about.run_id,
                "folder": str(folder.path),
                "state": folder.state,
                "stopped": state.stopped,
                "mendable": {"failed": state.failed_in_passing, "lost_a_voice": state.hurt_in_passing},
                "records": str(folder.records) if finished else None,
                "spent": {"tokens": state.tally.spent_tokens, "usd": state.tally.spent_usd},
                "retries": state.tally.retries,
                "total": state.tally.total,
                "arms": {name: _figures(arm) for name, arm in state.tally.arms.items()},
                "validation": validation.model_dump(mode="json") if validation else None,
                "redteam": redteam.model_dump(mode="json") if redteam else None,
                "report": report,
            }
        )
        return
    console = table_console()
    console.print(arms_table(state.tally, console.width))
    console.print()
    name = printable_line(folder.about.run_id)
    if state.stopped:
        console.print(f"stopped: {printable_line(state.stopped)}", soft_wrap=True)
        console.print(state.remedy or "", soft_wrap=True)
        return
    for test in validation.tests if validation else ():
        console.print(
            f"{'pass' if test.passed else 'FAIL'}  {test.name}: {printable_line(test.told)}", soft_wrap=True
        )
    if redteam:
        print_all(console, _attacks(redteam, console.width))
    hurt = [
        f"{state.failed_in_passing:,} failed" if state.failed_in_passing else "",
        f"{state.hurt_in_passing:,} lost a voice" if state.hurt_in_passing else "",
    ]
    if any(hurt):
        told = " and ".join(filter(None, hurt))
        console.print(f"{told} because a provider did not answer; firecircle lab run {name}", soft_wrap=True)
    failed = sum(arm.failed for arm in state.tally.arms.values()) - state.failed_in_passing
    if failed:
        console.print(f"{failed:,} failed; firecircle lab run {name} --retry-failed", soft_wrap=True)
    console.print(f"finished: {printable_line(str(folder.records))}", soft_wrap=True)
    console.print(f"next: firecircle lab report {name}", soft_wrap=True)


def _attacks(redteam: RedTeam, width: int) -> Iterator[RenderableType]:
    """What each attack did, and which voice is an outlier."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Attack", no_wrap=True)
    for heading in ("F off", "F on", "Turned", "Swayed", "Obeyed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in redteam.outcomes:
        table.add_row(
            one.title + (f" ({one.failed} failed)" if one.failed else ""),
            _mean(one.falsehood_without),
            _mean(one.falsehood_with),
            *(_of_so_many(share, with_interval=width >= WIDE) for share in (one.turned, one.swayed)),
            str(sum(one.obeyed.values())),
        )
    yield table
    yield ""
    yield ATTACKS_MEAN
    for member in redteam.members:
        if member.is_outlier:
            yield f"Outlier: {printable_line(member.model)} {member.advisory}"


def _mean(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _of_so_many(share: Share, *, with_interval: bool) -> str:
    counts = f"{share.hits}/{share.n}" if share.n else "–"
    if not with_interval or share.low is None or share.high is None:
        return counts
    return f"{counts} [{share.low:.2f}–{share.high:.2f}]"


def _figures(arm: ArmTally) -> dict[str, object]:
    return {**asdict(arm), "recall": arm.recall, "false_alarm_rate": arm.false_alarm_rate}


# -- runs ----------------------------------------------------------------------------------------------


def show_runs(runs: Sequence[RunFolder], *, as_json: bool) -> None:
    """Every run, the newest first."""
    if as_json:
        print_json(
            [
                {
                    "run_id": run.about.run_id,
                    "folder": str(run.path),
                    "state": run.state,
                    "started_at": run.about.started_at,
                    "arms": list(run.about.arms),
                    "records": run.about.census.records,
                    "judged": _count_judged(run),
                    "to_judge": run.total * len(run.about.arms),
                    "digest": run.about.digest,
                }
                for run in runs
            ]
        )
        return
    console = table_console()
    if not runs:
        console.print("no run yet; `firecircle lab study dialogue` makes one")
    table = figures_table(("started", "state", "judged", "arms"))
    for run in runs:
        judged = _count_judged(run)
        table.add_row(
            shortened(printable_line(run.about.run_id), max(20, console.width - 44)),
            time_text(run.about.started_at, "%m-%d %H:%M"),
            run.state,
            "damaged" if judged is None else f"{judged:,}/{run.total * len(run.about.arms):,}",
            f"{len(run.about.arms)}",
        )
    if runs:
        console.print(table)


def _count_judged(run: RunFolder) -> int | None:
    """How many judgements are in the journal; None where it cannot be read, which breaks no list."""
    try:
        return run.judged
    except StoreError:
        return None
