"""The plots of a report, drawn offline. Arms differ by colour and by dash or shape, never by colour alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from markupsafe import Markup

from firecircle.lab.figures.run import ArmFigures, RunFigures
from firecircle.lab.report.text_widths import held_to_width
from firecircle.lab.statistics import CurvePoint, Estimate, Performance
from firecircle.shapes import Shape, Text
from firecircle.telling.safe_text import name_with_codes, shortened, with_codes

Chart = Any
"""An altair chart; the library is heavy and loaded only when something is drawn."""

WIDTH, HEIGHT = 420, 300
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3])
COLOURS = (
    "#1d4f91",
    "#8a4a00",
    "#1f6b45",
    "#86307c",
    "#5a5d61",
    "#5c4033",
    "#006a7a",
    "#6f5b00",
    "#4338ca",
    "#9d174d",
)
"""The viewer's colours of voices and arms, so that an arm has one colour everywhere."""
ROC_SIDE, ROC_LEFT, ROC_BELOW, ROC_LINE = 420, 46, 40, 17
"""The picture's width, the room for its axes, and the height of a line of its legend."""
MOST_STEPS, MOST_POINTS, MOST_STOPS = 400, 40, 60
"""Steps of a drawn curve, its points that lead somewhere, and how many in all the Tab key stops at."""


@dataclass(frozen=True, slots=True)
class RocLine:
    """An arm in a ROC."""

    arm: str
    points: Sequence[CurvePoint]
    auc: float | None
    operating: tuple[float, float] | None
    """False alarms and attacks found at the plan's threshold."""
    is_calibrated: bool
    """Whether its thresholds are of the calibrated probability, which raises its alarm, not of F."""


def operating_point(of: Performance) -> tuple[float, float] | None:
    """False alarms and attacks found at the threshold; None where one is not known."""
    found, false_alarms = of.at_threshold.recall.value, of.at_threshold.false_alarm_rate.value
    return None if found is None or false_alarms is None else (false_alarms, found)


def roc_svg(lines: Sequence[RocLine], link: Callable[[RocLine, CurvePoint], str] | None = None) -> Markup:
    """The ROC of some arms, for the report and, with links behind its points, for the viewer.

    Colours are attributes, so that it can be alone; the viewer's style sheet gives it another theme.
    """
    right, top, foot = ROC_SIDE - 18, 10, ROC_SIDE - ROC_BELOW

    def x(value: float) -> float:
        return round(ROC_LEFT + value * (right - ROC_LEFT), 1)

    def y(value: float) -> float:
        return round(foot - value * (foot - top), 1)

    text = Markup('<text x="{}" y="{}" class="tick {}" text-anchor="{}" font-size="11" fill="#555">{}</text>')
    parts = [
        Markup('<line x1="{}" x2="{}" y1="{}" y2="{}" class="gridline" stroke="#e4e4e0"/>{}{}').format(
            ROC_LEFT,
            right,
            y(value / 4),
            y(value / 4),
            text.format(ROC_LEFT - 6, y(value / 4) + 4, "end", "end", f"{value * 25}%"),
            text.format(x(value / 4), foot + 15, "mid", "middle", f"{value * 25}%"),
        )
        for value in range(5)
    ]
    parts.append(text.format((ROC_LEFT + right) / 2, foot + 32, "mid", "middle", "false alarms"))
    parts.append(
        Markup('<g transform="translate(11 {}) rotate(-90)">{}</g>').format(
            (top + foot) / 2, text.format(0, 0, "mid", "middle", "attacks found")
        )
    )
    parts.append(
        Markup('<path class="chance" d="M{} {}L{} {}" stroke="#888" stroke-dasharray="2 4"/>').format(
            x(0), y(0), x(1), y(1)
        )
    )
    stops = sum(len(_thinned(line.points, MOST_POINTS)) for line in lines)
    for number, line in enumerate(lines):
        corners = [*_thinned(line.points, MOST_STEPS), *line.points[-1:]]
        dash = " ".join(map(str, DASHES[number % len(DASHES)]))
        steps = " ".join(f"{x(at.false_alarm_rate)},{y(at.recall)}" for at in corners)
        drawn = [Markup('<polyline points="{}" class="path open" fill="none" stroke="currentColor"'
                        ' stroke-width="2" stroke-dasharray="{}"/>').format(steps, dash)]  # fmt: skip
        for at in _thinned(line.points, MOST_POINTS) if link else ():
            if at.threshold is None:
                continue
            says = (
                f"{line.arm}, alarm from {'probability' if line.is_calibrated else 'F'} {at.threshold:.2f}:"
                f" {at.recall:.0%} of attacks found, {at.false_alarm_rate:.0%} false alarms"
            )
            drawn.append(
                Markup(
                    '<a class="spot corner" href="?{}#judgements"{} aria-label="{}"><title>{}</title>'
                    '<circle cx="{}" cy="{}" r="3"/></a>'
                ).format(
                    link(line, at) if link else "",
                    Markup(' tabindex="-1"') if stops > MOST_STOPS else "",
                    with_codes(says),
                    with_codes(says),
                    x(at.false_alarm_rate),
                    y(at.recall),
                )
            )
        if line.operating:
            at_x, at_y = x(line.operating[0]), y(line.operating[1])
            drawn.append(
                Markup('<path class="operating" d="M{} {}l7 7l-7 7l-7-7z" fill="currentColor"/>').format(
                    at_x, at_y - 7
                )
            )
        below = ROC_SIDE + 4 + ROC_LINE * number
        area = "" if line.auc is None else f", AUC {line.auc:.2f}"
        area += " (by calibrated probability)" if line.is_calibrated else ""
        drawn.append(
            Markup(
                '<path class="path" d="M{} {}h28" stroke="currentColor" stroke-width="2"'
                ' stroke-dasharray="{}"/><text x="{}" y="{}" class="label" font-size="12"'
                ' fill="currentColor">{}</text>'
            ).format(
                ROC_LEFT,
                below,
                dash,
                ROC_LEFT + 36,
                below + 4,
                shortened(name_with_codes(line.arm), 40) + area,
            )
        )
        colour = COLOURS[number % len(COLOURS)]
        group = Markup('<g class="v{}" color="{}">{}</g>')
        parts.append(group.format(number % len(COLOURS), colour, Markup("").join(drawn)))
    height = ROC_SIDE + ROC_LINE * len(lines)
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="chart square" viewBox="0 0 {} {}" width="{}"'
        ' height="{}" font-family="sans-serif" role="{}" aria-label="Attacks found against false alarms">'
        "{}</svg>"
    ).format(ROC_SIDE, height, ROC_SIDE, height, "group" if link else "img", Markup("").join(parts))


def _thinned(points: Sequence[CurvePoint], most: int) -> Sequence[CurvePoint]:
    """So many of the points at most, evenly."""
    return points[:: max(1, -(-len(points) // most))]


class Plot(Shape):
    """A plot in the forms a paper or a page needs."""

    name: Text
    title: Text
    description: Text
    """What it shows, for readers who cannot see it."""
    caption: Text
    """How to read it."""
    spec: Text = ""
    """The Vega-Lite specification, data included."""
    drawing: Text = ""
    """The SVG of a plot that is drawn here."""

    @property
    def svg(self) -> str:
        """Drawn as SVG; every text is held to the width it was laid out with, whatever fonts a reader has."""
        return self.drawing or held_to_width(_svg(self.spec))

    def drawn(self, form: Literal["png", "pdf"]) -> bytes:
        """Drawn as PNG or PDF."""
        import vl_convert

        # From the SVG: laying a plot out takes far longer than painting it.
        svg = self.drawing or _svg(self.spec)
        painted: bytes = vl_convert.svg_to_png(svg, scale=2) if form == "png" else vl_convert.svg_to_pdf(svg)
        return painted


@lru_cache(maxsize=64)
def _svg(spec: str) -> str:
    """Drawn once: a report shows a plot and keeps it too."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(spec)
    return drawn


def plots(figures: RunFigures) -> Iterator[Plot]:
    """Every plot that the figures can fill."""
    yield from _curves(figures)
    if any(arm.performance.attacks or arm.performance.benign for arm in figures.arms):
        yield _rates(figures)
    yield from _families(figures)
    yield from _rounds(figures)
    yield from _sizes(figures)
    yield from _opinions(figures)
    yield from _costs(figures)


TALKED = {
    "into an attack they had missed": COLOURS[0],
    "out of a false alarm": COLOURS[2],
    "out of an attack they had seen": COLOURS[1],
    "into a false alarm": COLOURS[4],
}
CAPTIONS = {
    "roc": "Each line is an arm, each point on it a threshold. Higher and further left is better; the dotted"
    " diagonal is guessing, a diamond is the plan's alarm threshold.",
    "precision": "The share of alarms that are attacks, as more attacks are found. It depends on how many"
    " attacks the data has.",
    "rates": "At the alarm threshold of the plan, with 95% Wilson intervals.",
    "families": "The share of each family's attacks that raises an alarm. Families may be small.",
    "benign-families": "The share of each family's benign prompts that raises an alarm. Paler is better.",
    "rounds": "The verdict if the dialogue had ended after that round. The highest F of any round counts, so"
    " neither rate can fall: a round pays when attacks found rise more than false alarms. Scales differ.",
    "sizes": "The expected rates of the highest F of so many of the voices, drawn at random, each judging"
    " alone. Scales differ.",
    "opinions": "Single voices that changed sides between their first and their last word: to the right those"
    " that became right, to the left those that became wrong.",
    "cost": "Attacks found with a threshold that keeps false alarms at 5%, against what a prompt costs.",
}


def _plot(name: str, title: str, description: str, chart: Chart) -> Plot:
    styled = (
        chart.properties(title=title, background="white")
        .configure_axis(labelFontSize=12, titleFontSize=13, gridColor="#eee")
        .configure_legend(labelFontSize=12, titleFontSize=12)
        .configure_title(fontSize=14, anchor="start")
    )
    return Plot(
        name=name,
        title=title,
        description=description or title,
        caption=CAPTIONS[name],
        spec=json.dumps(_with_codes(styled.to_dict())),
    )


def _with_codes(part: Any) -> Any:
    """A part of a chart whose texts are shown by the rule of every page: hidden characters by their codes."""
    if isinstance(part, str):
        return with_codes(part)
    if isinstance(part, dict):
        return {name: _with_codes(value) for name, value in part.items()}
    return [_with_codes(value) for value in part] if isinstance(part, list) else part


def _table(rows: list[dict[str, Any]]) -> Chart:
    import altair as alt

    return alt.Chart(alt.Data(values=rows))  # type: ignore[no-untyped-call]  # altair says so


def _arms(figures: RunFigures, rows: list[dict[str, Any]]) -> tuple[Chart, Chart]:
    """Colour and dash of every arm, the same in every plot; the legend names those that are drawn in this."""
    import altair as alt

    names = [arm.arm for arm in figures.arms]
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(names))]
    dashes = [DASHES[place % len(DASHES)] for place in range(len(names))]
    drawn = {row["arm"] for row in rows}
    legend = alt.Legend(
        title=None,
        values=[name for name in names if name in drawn],
        labelLimit=260,
        symbolStrokeWidth=2,
        orient="bottom",
        columns=3,
    )
    return (
        alt.Color("arm:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
        alt.StrokeDash("arm:N", scale=alt.Scale(domain=names, range=dashes), legend=legend),
    )


def _curves(figures: RunFigures) -> Iterator[Plot]:
    import altair as alt

    rows = [
        {
            "arm": arm.arm,
            "recall": point.recall,
            "precision": point.precision,
            "at": at,
        }
        for arm in figures.arms
        for at, point in enumerate(arm.curve.points)
    ]
    if not rows:
        return
    lines = [
        RocLine(
            arm.arm,
            arm.curve.points,
            arm.performance.auc.value,
            operating_point(arm.performance),
            arm.alarm_by != "f",
        )
        for arm in figures.arms
    ]
    areas = "; ".join(f"{line.arm}: area {line.auc:.3f}" for line in lines if line.auc is not None)
    yield Plot(
        name="roc",
        title="Attacks found against false alarms (ROC)",
        description=areas or "Attacks found against false alarms",
        caption=CAPTIONS["roc"],
        drawing=roc_svg(lines),
    )
    colour, dash = _arms(figures, rows)
    base = _table(rows).properties(width=WIDTH, height=HEIGHT)
    share = alt.Axis(format="%")
    pr = (
        base.transform_filter("isValid(datum.precision)")
        .mark_line()
        .encode(
            x=alt.X("recall:Q", title="attacks found", axis=share),
            y=alt.Y(
                "precision:Q", title="alarms that are attacks", axis=share, scale=alt.Scale(domain=[0, 1])
            ),
            color=colour,
            strokeDash=dash,
            order="at:Q",
        )
    )
    yield _plot("precision", "Precision against attacks found", areas, pr)


def _bounds(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _rates(figures: RunFigures) -> Plot:
    import altair as alt

    rows = []
    for arm in figures.arms:
        got = arm.performance.at_threshold
        rows.append({"arm": arm.arm, "rate": "attacks found", **_bounds(got.recall)})
        rows.append({"arm": arm.arm, "rate": "false alarms", **_bounds(got.false_alarm_rate)})
    base = _table(rows).encode(
        y=alt.Y("arm:N", title=None, sort=[arm.arm for arm in figures.arms], axis=alt.Axis(labelLimit=220)),
        color=alt.Color(
            "rate:N",
            scale=alt.Scale(domain=["attacks found", "false alarms"], range=[COLOURS[0], COLOURS[1]]),
            legend=alt.Legend(title=None, orient="bottom"),
        ),
    )
    title = f"share at F ≥ {figures.threshold:g}"
    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    points = base.mark_point(filled=True, size=70).encode(
        x=alt.X("value:Q", title=title, axis=alt.Axis(format="%")),
        shape=alt.Shape("rate:N", scale=alt.Scale(domain=["attacks found", "false alarms"])),
    )
    description = "; ".join(
        f"{row['arm']}: {row['rate']} {row['value']:.1%}" for row in rows if isinstance(row["value"], float)
    )
    chart = (spans + points).properties(width=WIDTH, height=max(80, 34 * len(figures.arms)))
    return _plot("rates", "Attacks found and false alarms, with 95% intervals", description, chart)


def _families(figures: RunFigures) -> Iterator[Plot]:
    found: list[dict[str, Any]] = []
    alarmed: list[dict[str, Any]] = []
    for arm in figures.arms:
        for group in arm.by_family:
            of = group.performance
            share = of.at_threshold.recall if of.attacks else of.at_threshold.false_alarm_rate
            if share.value is not None:
                row = {"arm": arm.arm, "family": group.name, "share": share.value, "n": share.n}
                (found if of.attacks else alarmed).append(row)
    if found:
        yield _heat(figures, "families", "Attacks found, family by family", found)
    if alarmed:
        yield _heat(figures, "benign-families", "False alarms, family by family", alarmed)


def _heat(figures: RunFigures, name: str, title: str, rows: list[dict[str, Any]]) -> Plot:
    import altair as alt

    arms = [arm.arm for arm in figures.arms]
    base = _table(rows).encode(
        x=alt.X("arm:N", title=None, sort=arms, axis=alt.Axis(labelLimit=160)),
        y=alt.Y("family:N", title=None, axis=alt.Axis(labelLimit=220)),
    )
    shade = alt.Scale(scheme="blues", domain=[0, 1])
    boxes = base.mark_rect().encode(color=alt.Color("share:Q", scale=shade, legend=None))
    words = base.mark_text(fontSize=11).encode(
        text=alt.Text("share:Q", format=".0%"),
        color=alt.condition("datum.share > 0.6", alt.value("white"), alt.value("black")),
    )
    description = "; ".join(
        f"{row['family']}, {row['arm']}: {row['share']:.0%} of {row['n']}" for row in rows[:80]
    )
    return _plot(name, title, description, (boxes + words).properties(width=max(120, 80 * len(arms))))


def _rounds(figures: RunFigures) -> Iterator[Plot]:
    rows = []
    for arm in figures.arms:
        for number, got in enumerate(arm.by_round, 1):
            if len(arm.by_round) > 1:
                rows.append(
                    {"arm": arm.arm, "round": number, "rate": "attacks found", "value": got.recall.value}
                )
                rows.append(
                    {
                        "arm": arm.arm,
                        "round": number,
                        "rate": "false alarms",
                        "value": got.false_alarm_rate.value,
                    }
                )
    rows = [row for row in rows if row["value"] is not None]
    if not rows:
        return
    yield _plot(
        "rounds",
        "What each round adds",
        "; ".join(
            f"{row['arm']} after round {row['round']}: {row['rate']} {row['value']:.1%}" for row in rows
        ),
        _two_rates(figures, rows, "round", "after round"),
    )


def _sizes(figures: RunFigures) -> Iterator[Plot]:
    rows = []
    for arm in figures.arms:
        if arm.kind in ("fire_circle", "parallel", "clones"):
            for got in arm.by_size:
                rows.append(
                    {"arm": arm.arm, "size": got.size, "rate": "attacks found", "value": got.recall.value}
                )
                rows.append(
                    {
                        "arm": arm.arm,
                        "size": got.size,
                        "rate": "false alarms",
                        "value": got.false_alarm_rate.value,
                    }
                )
    rows = [row for row in rows if row["value"] is not None]
    if rows:
        yield _plot(
            "sizes",
            "What more voices buy and cost, before they talk",
            "; ".join(
                f"{row['arm']}, {row['size']} voices: {row['rate']} {row['value']:.1%}" for row in rows
            ),
            _two_rates(figures, rows, "size", "voices in the circle"),
        )


def _two_rates(figures: RunFigures, rows: list[dict[str, Any]], field: str, title: str) -> Chart:
    import altair as alt

    colour, dash = _arms(figures, rows)
    base = _table(rows).encode(
        x=alt.X(f"{field}:O", title=title, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(format="%")),
        color=colour,
        strokeDash=dash,
    )
    lines = base.mark_line(point=True).properties(width=WIDTH // 2, height=HEIGHT * 2 // 3)
    return lines.facet(column=alt.Column("rate:N", title=None)).resolve_scale(y="independent")


def _opinions(figures: RunFigures) -> Iterator[Plot]:
    import altair as alt

    rows: list[dict[str, Any]] = []
    for arm in figures.arms:
        if arm.flips is not None:
            of = arm.flips
            counts = (of.rescued_attacks, of.false_alarms_cleared, -of.lost_attacks, -of.false_alarms_spread)
            rows += [
                {"arm": arm.arm, "talked": what, "count": count}
                for what, count in zip(TALKED, counts, strict=True)
            ]
    if not any(row["count"] for row in rows):
        return
    chart = (
        _table(rows)
        .mark_bar()
        .encode(
            y=alt.Y("arm:N", title=None, axis=alt.Axis(labelLimit=220)),
            x=alt.X(
                "count:Q",
                title="voices talked right (to the right) and wrong (to the left)",
                axis=alt.Axis(tickMinStep=1, labelExpr="format(abs(datum.value), 'd')"),
            ),
            color=alt.Color(
                "talked:N",
                scale=alt.Scale(domain=list(TALKED), range=list(TALKED.values())),
                legend=alt.Legend(title=None, labelLimit=260, orient="bottom", columns=2),
            ),
        )
        .properties(width=WIDTH, height=max(80, 34 * len({row["arm"] for row in rows})))
    )
    description = "; ".join(f"{row['arm']}: {abs(row['count'])} {row['talked']}" for row in rows)
    yield _plot("opinions", "What the discussion did to single voices", description, chart)


def _costs(figures: RunFigures) -> Iterator[Plot]:
    import altair as alt

    def spent(arm: ArmFigures) -> tuple[float, str] | None:
        if arm.spent.cost_usd:
            return arm.spent.cost_usd / max(arm.prompts, 1), "US dollars a prompt"
        if arm.spent.tokens_in:
            return (arm.spent.tokens_in + arm.spent.tokens_out) / max(arm.prompts, 1), "tokens a prompt"
        return (arm.spent.calls / max(arm.prompts, 1), "calls a prompt") if arm.spent.calls else None

    by_arm = [(arm, spent(arm)) for arm in figures.arms]
    units = {spending[1] for _, spending in by_arm if spending}
    if len(units) != 1:
        return
    rows = [
        {"arm": arm.arm, "spent": spending[0], "recall": arm.performance.recall_at_5_percent.value}
        for arm, spending in by_arm
        if spending and arm.performance.recall_at_5_percent.value is not None
    ]
    if len(rows) < 2:
        return
    colour, _ = _arms(figures, rows)
    base = _table(rows).encode(
        x=alt.X("spent:Q", title=units.pop()),
        y=alt.Y(
            "recall:Q",
            title="attacks found at 5% false alarms",
            axis=alt.Axis(format="%"),
            scale=alt.Scale(domain=[0, 1]),
        ),
        color=colour,
    )
    shapes = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left"]
    names = [arm.arm for arm in figures.arms]
    marks = alt.Scale(domain=names, range=[shapes[place % len(shapes)] for place in range(len(names))])
    legend = alt.Legend(title=None, values=[str(row["arm"]) for row in rows], orient="bottom", columns=3)
    chart = base.mark_point(filled=True, size=120).encode(
        shape=alt.Shape("arm:N", scale=marks, legend=legend)
    )
    words = "; ".join(f"{row['arm']}: {row['spent']:.3g} for {row['recall']:.1%}" for row in rows)
    yield _plot("cost", "What detection costs", words, chart.properties(width=WIDTH, height=HEIGHT))
