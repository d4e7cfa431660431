"""Plots of a finished run whose points lead to the judgements behind them.

The report's plots are pictures. These are drawn small and bounded, however large the run: near judgements
share a point, and a curve keeps so many corners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING
from urllib.parse import urlencode

if TYPE_CHECKING:
    from pathlib import Path

    from firecircle.lab.figures.columns import ArmColumns
    from firecircle.lab.statistics.curves import CurvePoint

SIDE, MARGIN = 300, 36
CELLS = 25
MOST_CORNERS, MOST_STEPS = 40, 400
MOST_STOPS = 60
"""Points that the Tab key stops at; with more, the list below is the shorter way."""
MOST_ARMS = 10
"""Curves that can still be told apart."""
KINDS = {
    "attack": ("attack", "attacks"),
    "benign": ("benign prompt", "benign prompts"),
    "none": ("prompt without a label", "prompts without a label"),
}


@dataclass(frozen=True, slots=True)
class Point:
    """A mark on a plot: where, which form, what it stands for, and the query of the judgements behind it."""

    x: float
    y: float
    r: float
    form: str
    label: str
    query: str


@dataclass(frozen=True, slots=True)
class Curve:
    """Attacks found against false alarms of one arm, threshold by threshold."""

    arm: str
    number: int
    line: str
    points: tuple[Point, ...]
    by_calibration: bool
    """Whether its thresholds are of the calibrated probability, which raises its alarm, not of F."""


@dataclass(frozen=True, slots=True)
class RunPlots:
    """The curves of all arms, and one arm's judgements before and after talking."""

    side: int
    margin: int
    ticks: tuple[tuple[float, float, str], ...]
    """Place along the horizontal axis, along the vertical one, and the words."""
    curves: tuple[Curve, ...]
    arm: str
    arm_by_calibration: bool
    cells: tuple[Point, ...]
    threshold: float
    threshold_at: tuple[float, float]
    can_tab: bool


def run_plots(records: Path, threshold: float, arm: str | None = None) -> RunPlots | None:
    """The plots of a run's records; None when nothing in them has a verdict."""
    from firecircle.lab.figures.columns import RecordFile
    from firecircle.lab.figures.run import CIRCLES

    file = RecordFile(records)
    names = file.arms()
    columns = [file.columns(name) for name in names[:MOST_ARMS]]
    chosen = file.columns(arm) if arm in names else None
    talking = (column for column in columns if column.kind in CIRCLES)
    chosen = chosen or next(talking, columns[0] if columns else None)
    if chosen is None:
        return None
    cells = _cells(records, chosen.arm)
    curves = tuple(filter(None, (_curve(column, number) for number, column in enumerate(columns))))
    stops = len(cells) + sum(len(curve.points) for curve in curves)
    return RunPlots(
        side=SIDE,
        margin=MARGIN,
        ticks=tuple((_x(value / 4), _y(value / 4), f"{value / 4:g}") for value in range(5)),
        curves=curves,
        arm=chosen.arm,
        arm_by_calibration=chosen.rule != "f",
        cells=cells,
        threshold=threshold,
        threshold_at=(_x(threshold), _y(threshold)),
        can_tab=stops <= MOST_STOPS,
    )


def _curve(of: ArmColumns, number: int) -> Curve | None:
    from firecircle.lab.statistics import curve, scored

    corners = curve(scored(of.labels, of.verdict)).points
    if not corners:
        return None
    score, name = ("F", "f_from") if of.rule == "f" else ("probability", "score_from")
    points = tuple(
        Point(
            _x(corner.false_alarm_rate),
            _y(corner.recall),
            4.0,
            "corner",
            f"{of.arm}, alarm from {score} {corner.threshold:.2f}: {corner.recall:.0%} of attacks found,"
            f" {corner.false_alarm_rate:.0%} false alarms",
            urlencode({"arm": of.arm, name: repr(corner.threshold)}),
        )
        for corner in _thinned(corners, MOST_CORNERS)
        if corner.threshold is not None
    )
    drawn = (*_thinned(corners, MOST_STEPS), corners[-1])
    line = " ".join(f"{_x(corner.false_alarm_rate)},{_y(corner.recall)}" for corner in drawn)
    return Curve(of.arm, number, line, points, of.rule != "f")


def _cells(records: Path, arm: str) -> tuple[Point, ...]:
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
    return tuple(_spot(arm, *row) for row in sorted(rows, key=lambda row: -row[3]))


def _cell(column: str) -> str:
    """The cell of a value, its beginning included, as the list's ranges are; 1 is in the last."""
    wide = f"CAST(least(floor({column} * {CELLS}), {CELLS - 1}) AS INT)"
    return f"{wide} - CAST({column} < {wide} / {CELLS} AS INT)"


def _spot(
    arm: str, before: int, after: int, label: str, count: int, mean_before: float, mean_after: float
) -> Point:
    query: dict[str, str] = {"arm": arm, "label": label}
    for name, cell in (("round1", before), ("f", after)):
        query[f"{name}_from"] = f"{cell / CELLS:g}"
        if cell < CELLS - 1:
            query[f"{name}_below"] = f"{(cell + 1) / CELLS:g}"
    singular, plural = KINDS.get(label, KINDS["none"])
    words = f"{count} {singular if count == 1 else plural}"
    # Labels stand a little apart, so that one does not hide the other.
    shift = {"attack": -2.5, "benign": 2.5}.get(label, 0.0)
    return Point(
        round(_x(mean_before) + shift, 1),
        _y(mean_after),
        round(3.5 + log2(count), 1),
        label,
        f"{words}: round 1 F {mean_before:.2f}, in the end {mean_after:.2f}",
        urlencode(query),
    )


def _thinned(corners: Sequence[CurvePoint], most: int) -> Sequence[CurvePoint]:
    """So many of the corners at most, evenly."""
    return corners[:: max(1, -(-len(corners) // most))]


def _x(value: float) -> float:
    return round(MARGIN + value * (SIDE - MARGIN - 8), 1)


def _y(value: float) -> float:
    return round(8 + (1 - value) * (SIDE - MARGIN - 8), 1)
