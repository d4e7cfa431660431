"""Tables of the lab: what a plan may take, how far a run is, which runs there are, two runs compared."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from firecircle.cli.output import console_on, print_all, print_json
from firecircle.cli.printable import printable_line
from firecircle.errors import StoreError
from firecircle.telling.safe_text import shortened
from firecircle.telling.words import time_text

if TYPE_CHECKING:
    from firecircle.lab.estimate import Estimate
    from firecircle.lab.plan import Plan
    from firecircle.lab.redteam.outcomes import RedTeam, Share
    from firecircle.lab.runs.folder import RunFolder
    from firecircle.lab.runs.runner import RunState
    from firecircle.lab.runs.tally import ArmTally, Tally
    from firecircle.lab.validation import Validation


PIPED = 400
"""Columns of a table that no terminal limits: nothing in it is cut."""
WIDE = 100
"""Columns of a terminal that has room for intervals."""
ATTACKS_MEAN = (
    "F: mean falsehood of the verdicts without and with the attack. Turned: verdicts that went over to the"
    " side the attack wants, of those on the other. Swayed: the same of single voices. Obeyed: how often a"
    " voice did what a text asks of evaluators."
)


def table_console() -> Console:
    """Standard output for tables. A pipe has no width, so that no cell is shortened there."""
    console = console_on(sys.stdout)
    if not console.is_terminal:
        console.width = PIPED
    return console


def _table(titles: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("", no_wrap=True)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _money(usd: float | None) -> str:
    return "unknown" if usd is None else f"${usd:,.4f}" if usd else "free"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# -- before a run --------------------------------------------------------------------------------------


def show_estimate(estimate: Estimate, plan: Plan, *, as_json: bool) -> None:
    """What each arm may take, and all together."""
    if as_json:
        total = {"cost_usd": estimate.cost_usd, "tokens": estimate.tokens}
        print_json({**estimate.model_dump(mode="json"), "total": total, "digest": plan.digest})
        return
    console = table_console()
    table = _table(("records", "calls", "tokens in", "tokens out", "price", "time"))
    for arm in estimate.arms:
        table.add_row(
            shortened(printable_line(arm.arm), max(12, console.width - 66)),
            f"{arm.records:,}",
            f"{arm.calls:,}",
            f"{arm.tokens_in:,}",
            f"{arm.tokens_out:,}",
            _money(arm.cost_usd),
            _duration(arm.seconds),
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
    table = _table(("judged", "failed", "recall", "false alarms", "calls", "tokens", "spent"))
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
    table = _table(("started", "state", "judged", "arms"))
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
