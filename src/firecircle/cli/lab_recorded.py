"""What recorded judgements show, on the screen."""

from __future__ import annotations

import sys

from rich.table import Table

from firecircle.cli.printable import printable_line
from firecircle.cli.screen import console_on, print_json
from firecircle.lab.recorded import RecordedStudy
from firecircle.lab.statistics import Estimate


def show_recorded(study: RecordedStudy, *, as_json: bool) -> None:
    """Each model and rule at the threshold, then with thresholds fitted on other prompts."""
    if as_json:
        print_json(study.model_dump(mode="json"))
        return
    console = console_on(sys.stdout)
    print(f"{study.prompts:,} prompts: {study.attacks:,} attacks, {study.benign:,} benign")
    for why, count in study.in_no_rate.items():
        print(f"{count:,} labelled {printable_line(why, 40)} are in no rate")
    for bad in study.bad_rows:
        print(f"left out: {printable_line(bad, 160)}")
    print(f"\nalarm at F >= {study.threshold:g}")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in ("", "recall", "false alarms", "AUC"):
        table.add_column(title, no_wrap=True)
    for row in study.rows:
        at = row.performance.at_threshold
        auc = row.performance.auc.value
        table.add_row(
            printable_line(row.name, 50),
            _share(at.recall),
            _share(at.false_alarm_rate),
            "" if auc is None else f"{auc:.3f}",
        )
    console.print(table)
    print("\nthresholds and weights fitted on other prompts")
    fitted = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    first = study.calibrated[0] if study.calibrated else None
    for title in (
        "",
        f"recall at {first.same_rate_as_max.target:.0%} false alarms" if first else "recall",
        f"recall at {first.low_rate.target:.0%} false alarms" if first else "recall",
    ):
        fitted.add_column(title, no_wrap=True)
    for one in study.calibrated:
        fitted.add_row(
            printable_line(one.name, 50),
            _plain(one.same_rate_as_max.recall_at_target),
            _plain(one.low_rate.recall_at_target),
        )
    console.print(fitted)
    if study.agreement.value is not None:
        print(f"\nagreement of the models (Krippendorff's alpha): {study.agreement.value:.2f}")
    for what, errors in (("misses", study.misses), ("false alarms", study.false_alarms)):
        if errors.effective_voices is not None:
            print(f"as to {what} {len(errors.voices)} models count for {errors.effective_voices:.1f}")


def _share(figure: Estimate) -> str:
    if figure.value is None:
        return figure.note or ""
    if figure.low is None or figure.high is None:
        return f"{figure.value:.0%}"
    return f"{figure.value:.0%} [{figure.low:.0%}, {figure.high:.0%}]"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
