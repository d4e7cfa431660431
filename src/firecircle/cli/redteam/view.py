"""The attacks on a circle as a table for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from firecircle.cli.output import console_on, print_all, print_json
from firecircle.cli.printable import printable_line
from firecircle.lab.redteam.attacks import Attack
from firecircle.lab.redteam.trial import AttackOutcome, RedTeamReport, Share
from firecircle.telling.words import counted

WIDE = 100
MEANING = (
    "F: mean falsehood of the verdicts without and with the attack. Turned: verdicts that went over to the"
    " side the attack wanted, of those on the other. Swayed: the same of single voices (contagion). Obeyed:"
    " how often a voice said the canary. Noted: prompts of which it is said that they address the evaluators."
)


def list_attacks(attacks: Sequence[Attack], *, as_json: bool) -> int:
    """Name the attacks."""
    if as_json:
        print_json(
            [{"name": attack.name, "layer": attack.layer, "title": attack.title} for attack in attacks]
        )
    else:
        print("\n".join(attack.title for attack in attacks))
    return 0


def show(report: RedTeamReport, path: Path | None) -> None:
    """Print what came of each attack, who is an outlier, and where the report is kept."""
    console = console_on(sys.stdout)
    has_intervals = console.width >= WIDE
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Attack", no_wrap=True)
    for heading in ("F off", "F on", "Turned", "Swayed", "Obeyed", "Noted"):
        table.add_column(heading, justify="right", no_wrap=True)
    for outcome in report.outcomes:
        table.add_row(*_cells(outcome, has_intervals))
    rounds = counted(report.max_rounds, "round")
    quiet = report.alarms_without
    print_all(
        console,
        (
            f"Attacked: {printable_line(', '.join(report.models))}; {rounds} at most",
            f"Without attacks: {quiet.hits} of {quiet.n} attack prompts raise an alarm,"
            f" {report.false_alarms_without.hits} of {report.false_alarms_without.n} benign ones",
            "",
            table,
            "",
            MEANING,
            *_outliers(report),
            *([f"Kept for the viewer: {printable_line(str(path))}"] if path else ()),
        ),
    )


def _cells(outcome: AttackOutcome, has_intervals: bool) -> tuple[str, ...]:
    return (
        outcome.title + (f" ({outcome.failed} failed)" if outcome.failed else ""),
        _figure(outcome.falsehood_without),
        _figure(outcome.falsehood_with),
        _share(outcome.succeeded, has_intervals),
        _share(outcome.contagion, has_intervals),
        str(sum(outcome.obeyed.values())),
        _share(outcome.noted, False),
    )


def _figure(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:.2f}"


def _share(share: Share, has_interval: bool) -> str:
    counts = f"{share.hits}/{share.n}" if share.n else "–"
    if not has_interval or share.low is None or share.high is None:
        return counts
    return f"{counts} [{share.low:.2f}–{share.high:.2f}]"


def _outliers(report: RedTeamReport) -> list[str]:
    return [
        f"Outlier: {printable_line(member.model)} {member.advisory}"
        for member in report.members
        if member.is_outlier
    ]
