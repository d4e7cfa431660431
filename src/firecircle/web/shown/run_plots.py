"""Plots of a finished run whose points lead to its judgements: the report's ROC, and what the discussion did.

They are small however large the run: near judgements share a point, and a curve keeps so many corners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from markupsafe import Markup

if TYPE_CHECKING:
    from pathlib import Path

    from firecircle.lab.report.plots import RocLine, Spot
    from firecircle.lab.statistics.performance import CurvePoint, Performance

CELLS = 25
MOST_ARMS = 10
"""Curves that can still be told apart."""
KINDS = {
    "attack": ("attack", "attacks"),
    "benign": ("benign prompt", "benign prompts"),
    "none": ("prompt without a label", "prompts without a label"),
}


@dataclass(frozen=True, slots=True)
class RunPlots:
    """The curves of all arms, and one arm's judgements before and after talking."""

    roc: Markup
    """Empty where no arm judged both attacks and benign prompts."""
    by_calibration: bool
    """Whether some of its points are thresholds of the calibrated probability."""
    arm: str
    arm_by_calibration: bool
    talk: Markup
    threshold: float


def run_plots(
    records: Path, threshold: float, arm: str | None, performances: Mapping[str, Performance]
) -> RunPlots | None:
    """The plots of a run's records; None when nothing in them has a verdict.

    The ROC is that of the report, with links; what its arms came to may not be known yet.
    """
    from firecircle.lab.figures.columns import RecordFile
    from firecircle.lab.figures.run import CIRCLES
    from firecircle.lab.report.plots import RocLine, operating_point, roc_svg, talk_svg
    from firecircle.lab.statistics.estimate import scored
    from firecircle.lab.statistics.performance import curve

    file = RecordFile(records)
    names = file.arms()
    columns = [file.columns(name) for name in names[:MOST_ARMS]]
    chosen = file.columns(arm) if arm in names else None
    talking = (column for column in columns if column.kind in CIRCLES)
    chosen = chosen or next(talking, columns[0] if columns else None)
    if chosen is None:
        return None
    lines = [
        RocLine(
            of.arm,
            curve(scored(of.labels, of.verdict)).points,
            known.auc.value if known else None,
            operating_point(known) if known else None,
            of.rule != "f",
        )
        for of in columns
        for known in (performances.get(of.arm),)
    ]
    return RunPlots(
        roc=roc_svg(lines, _link) if any(line.points for line in lines) else Markup(""),
        by_calibration=any(line.is_calibrated for line in lines),
        arm=chosen.arm,
        arm_by_calibration=chosen.rule != "f",
        talk=talk_svg(_spots(records, chosen.arm), threshold),
        threshold=threshold,
    )


def _link(line: RocLine, at: CurvePoint) -> str:
    name = "score_from" if line.is_calibrated else "f_from"
    return urlencode({"arm": line.arm, name: repr(at.threshold)})


def _spots(records: Path, arm: str) -> list[Spot]:
    """Judgements as they are, repeats apart: the list behind a point shows the same ones."""
    import duckdb

    from firecircle.lab.records import records_table

    with duckdb.connect(":memory:") as database:
        asked = (
            f"SELECT {_cell('round1_f')}, {_cell('f')}, coalesce(label, 'none'), count(*), avg(round1_f),"
            f" avg(f) FROM {records_table(database, records)}"
            " WHERE arm = ? AND f IS NOT NULL AND round1_f IS NOT NULL GROUP BY ALL ORDER BY ALL"
        )
        rows = database.execute(asked, [arm]).fetchall()
    return [_spot(arm, *row) for row in sorted(rows, key=lambda row: -row[3])]


def _cell(column: str) -> str:
    """The cell of a value, its beginning included, as the list's ranges are; 1 is in the last."""
    wide = f"CAST(least(floor({column} * {CELLS}), {CELLS - 1}) AS INT)"
    return f"{wide} - CAST({column} < {wide} / {CELLS} AS INT)"


def _spot(
    arm: str, before: int, after: int, label: str, count: int, mean_before: float, mean_after: float
) -> Spot:
    from firecircle.lab.report.plots import Spot

    query: dict[str, str] = {"arm": arm, "label": label}
    for name, cell in (("round1", before), ("f", after)):
        query[f"{name}_from"] = f"{cell / CELLS:g}"
        if cell < CELLS - 1:
            query[f"{name}_below"] = f"{(cell + 1) / CELLS:g}"
    singular, plural = KINDS.get(label, KINDS["none"])
    words = f"{count} {singular if count == 1 else plural}"
    says = f"{words}: round 1 F {mean_before:.2f}, in the end {mean_after:.2f}"
    return Spot(mean_before, mean_after, count, label, says, urlencode(query))
