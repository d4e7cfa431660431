"""The plots of a report and of a run's page, drawn as SVG. Arms differ by colour and by dash or shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import floor, log2, log10

from markupsafe import Markup

from firecircle.lab.figures.run import ArmFigures, RunFigures
from firecircle.lab.statistics.estimate import Estimate
from firecircle.lab.statistics.performance import CurvePoint, Performance
from firecircle.shapes import Shape, Text
from firecircle.telling.safe_text import name_with_codes, shortened, with_codes

SIDE, HEIGHT, LEFT, BELOW, RIGHT, TOP, LINE = 420, 300, 46, 40, 18, 10, 17
"""The size of a plot, the room around what is drawn, and the height of a line of its legend."""
ROW, COLUMN, LETTER = 34, 80, 6.2
LONGEST_NAME = 34
DASHES = ("1 0", "6 3", "2 2", "8 2 2 2", "4 4", "1 3")
COLOURS = (
    ("#1d4f91", "#8db8f0"),
    ("#8a4a00", "#f0b36b"),
    ("#1f6b45", "#7fd1a3"),
    ("#86307c", "#e2a3da"),
    ("#5a5d61", "#b8bcc2"),
    ("#5c4033", "#cdb39f"),
    ("#006a7a", "#6fd3e3"),
    ("#6f5b00", "#d9c36a"),
    ("#4338ca", "#b0aaff"),
    ("#9d174d", "#f58fb8"),
)
"""The viewer's colours of voices and arms, on light and on dark, so that an arm has one colour everywhere."""
SHAPES = ("M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0", "M-5-5h10v10h-10z", "M0-6l6 11h-12z", "M0-7l7 7l-7 7l-7-7z",
          "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z", "M0 6l6-11h-12z", "M-6 0l11-6v12z")  # fmt: skip
OPERATING = SHAPES[3]
STYLE = Markup("<style>:root{{color-scheme:light dark}}{}{}</style>").format(
    Markup(
        ".tick{fill:light-dark(#555,#aaa)}.gridline{stroke:light-dark(#e4e4e0,#3a3a38)}"
        ".over{fill:light-dark(#fff,#111)}.under{fill:light-dark(#1d1d1b,#ececea)}"
    ),
    Markup("").join(
        Markup(".v{}{{color:light-dark({},{})}}").format(place, *pair) for place, pair in enumerate(COLOURS)
    ),
)
"""For a plot that is alone; on a page its style sheet says the same."""
MOST_STEPS, MOST_POINTS, MOST_STOPS = 400, 40, 60
"""Steps of a drawn curve, its points that lead somewhere, and how many in all the Tab key stops at."""
RATES = ("attacks found", "false alarms")


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


@dataclass(frozen=True, slots=True)
class Spot:
    """Judgements before and after talking that share a point: how many, their label, and where it leads."""

    before: float
    after: float
    count: int
    form: str
    label: str
    query: str


class Plot(Shape):
    """A plot for a paper or a page."""

    name: Text
    title: Text
    description: Text
    """What it shows, for readers who cannot see it."""
    caption: Text
    """How to read it."""
    drawing: Text

    @property
    def svg(self) -> str:
        """The drawing by itself, light or dark like what is around it."""
        opening, end, rest = self.drawing.partition(">")
        return f"{opening}{end}{STYLE}{rest}"


def operating_point(of: Performance) -> tuple[float, float] | None:
    """False alarms and attacks found at the threshold; None where one is not known."""
    found, false_alarms = of.at_threshold.recall.value, of.at_threshold.false_alarm_rate.value
    return None if found is None or false_alarms is None else (false_alarms, found)


# -- what every plot is made of ----------------------------------------------------------------------------


def _el(tag: str, *inside: str, **attributes: object) -> Markup:
    """An element; colours are attributes, so that a picture can be alone and a style sheet change them."""
    told = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), value)
        for name, value in attributes.items()
        if value is not None
    )
    return Markup("<{}{}>{}</{}>").format(Markup(tag), told, Markup("").join(inside), Markup(tag))


def _text(
    x: float, y: float, words: str, anchor: str = "start", *, name: str = "tick", **more: object
) -> Markup:
    kind = {"middle": f"{name} mid", "end": f"{name} end"}.get(anchor, name)
    fill = "currentColor" if name == "label" else "#555"
    return _el("text", words, class_=kind, x=round(x, 1), y=round(y, 1), text_anchor=anchor, font_size=11,
               fill=more.pop("fill", fill), **more)  # fmt: skip


def _arm(number: int, *parts: str) -> Markup:
    place = number % len(COLOURS)
    return _el("g", *parts, class_=f"v{place}", color=COLOURS[place][0])


def _mark(shape: int, x: float, y: float) -> Markup:
    d, place = SHAPES[shape % len(SHAPES)], f"translate({x:.1f} {y:.1f})"
    return _el("path", class_="mark", d=d, transform=place, fill="currentColor")


def _path(points: Iterable[tuple[float, float]], number: int) -> Markup:
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return _el("polyline", class_="path open", points=steps, fill="none", stroke="currentColor",
               stroke_width=2, stroke_dasharray=DASHES[number % len(DASHES)])  # fmt: skip


def _svg(width: float, height: float, label: str, *parts: str, role: str = "img") -> Markup:
    size = {"viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "height": f"{height:g}"}
    return _el("svg", *parts, xmlns="http://www.w3.org/2000/svg", class_="chart square", **size,
               font_family="sans-serif", role=role, aria_label=with_codes(label))  # fmt: skip


def _called(name: str, longest: int = LONGEST_NAME) -> str:
    return shortened(name_with_codes(name), longest)


def _legend(top: float, entries: Iterable[tuple[int, Markup, str]]) -> Iterator[Markup]:
    """A line for each: its colour, its sign drawn around 0, its words."""
    for line, (number, sign, words) in enumerate(entries):
        there = f"translate({LEFT + 14} {top + LINE * line:g})"
        yield _arm(number, _el("g", sign, transform=there),
                   _text(LEFT + 36, top + LINE * line + 4, words, name="label"))  # fmt: skip


def _dash(number: int) -> Markup:
    return _path([(-14, 0), (14, 0)], number)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the values of two axes are drawn."""

    right: float = SIDE - RIGHT
    foot: float = SIDE - BELOW
    left: float = LEFT
    top: float = TOP
    most_x: float = 1.0
    most_y: float = 1.0
    least_x: float = 0.0

    def x(self, value: float) -> float:
        share = (value - self.least_x) / ((self.most_x - self.least_x) or 1.0)
        return round(self.left + share * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        return round(self.foot - value / self.most_y * (self.foot - self.top), 1)

    def across(self, title: str, ticks: Iterable[tuple[float, str]]) -> Iterator[Markup]:
        """The horizontal axis."""
        for value, words in ticks:
            yield _text(self.x(value), self.foot + 15, words, "middle")
        yield _text((self.left + self.right) / 2, self.foot + 32, title, "middle")

    def up(self, title: str, ticks: Iterable[tuple[float, str]]) -> Iterator[Markup]:
        """The vertical axis with its lines."""
        for value, words in ticks:
            yield _el("line", class_="gridline", x1=self.left, x2=self.right, y1=self.y(value),
                      y2=self.y(value), stroke="#e4e4e0")  # fmt: skip
            yield _text(self.left - 6, self.y(value) + 4, words, "end")
        turned = f"translate({self.left - 35} {(self.top + self.foot) / 2}) rotate(-90)"
        yield _el("g", _text(0, 0, title, "middle"), transform=turned)


def _shares(most: float = 1.0) -> list[tuple[float, str]]:
    return [(value, f"{value:.3g}" if most == 0 else f"{value:.0%}") for value in _steps(most)]


def _steps(most: float) -> list[float]:
    """Round numbers from 0 to what is at least `most`, some four of them."""
    if not most > 0:
        return [0.0, 1.0]
    unit = 10.0 ** floor(log10(most / 4))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor * 5 >= most)
    count = next(number for number in range(1, 7) if step * number >= most * 0.999)
    return [step * number for number in range(count + 1)]


# -- the plots ---------------------------------------------------------------------------------------------


def roc_svg(lines: Sequence[RocLine], link: Callable[[RocLine, CurvePoint], str] | None = None) -> Markup:
    """The ROC of some arms, for the report and, with links behind its points, for the viewer."""
    frame = _Frame()
    parts = [
        *frame.up(RATES[0], _shares()),
        *frame.across(RATES[1], _shares()),
        _el("path", class_="chance", d=f"M{frame.x(0)} {frame.y(0)}L{frame.x(1)} {frame.y(1)}", stroke="#888",
            stroke_dasharray="2 4"),
    ]  # fmt: skip
    stops = sum(len(_thinned(line.points, MOST_POINTS)) for line in lines)
    for number, line in enumerate(lines):
        corners = [*_thinned(line.points, MOST_STEPS), *line.points[-1:]]
        drawn = [_path(((frame.x(at.false_alarm_rate), frame.y(at.recall)) for at in corners), number)]
        for at in _thinned(line.points, MOST_POINTS) if link else ():
            if at.threshold is None:
                continue
            says = with_codes(
                f"{line.arm}, alarm from {'probability' if line.is_calibrated else 'F'} {at.threshold:.2f}:"
                f" {at.recall:.0%} of attacks found, {at.false_alarm_rate:.0%} false alarms"
            )
            dot = _el("circle", cx=frame.x(at.false_alarm_rate), cy=frame.y(at.recall), r=3)
            query = link(line, at) if link else ""
            drawn.append(_leading("corner", query, says, dot, can_tab=stops <= MOST_STOPS))
        if line.operating:
            place = f"translate({frame.x(line.operating[0])} {frame.y(line.operating[1])})"
            drawn.append(_el("path", class_="operating", d=OPERATING, transform=place, fill="currentColor"))
        parts.append(_arm(number, *drawn))
    parts += _legend(SIDE + 4, ((number, _dash(number), _about(line)) for number, line in enumerate(lines)))
    height, role = SIDE + LINE * len(lines), "group" if link else "img"
    return _svg(SIDE, height, "Attacks found against false alarms", *parts, role=role)


def _about(line: RocLine) -> str:
    area = "" if line.auc is None else f", AUC {line.auc:.2f}"
    return _called(line.arm, 40) + area + (" (by calibrated probability)" if line.is_calibrated else "")


def _leading(kind: str, query: str, says: str, sign: Markup, *, can_tab: bool) -> Markup:
    """A point that leads to its judgements."""
    return _el("a", _el("title", says), sign, class_=f"spot {kind}", href=f"?{query}#judgements",
               tabindex=None if can_tab else "-1", aria_label=says)  # fmt: skip


def talk_svg(spots: Sequence[Spot], threshold: float) -> Markup:
    """F of round 1 against F in the end, for the viewer: each point leads to its judgements."""
    frame = _Frame()
    parts = [
        *frame.up("F in the end", [(value / 4, f"{value / 4:g}") for value in range(5)]),
        *frame.across("F of round 1", [(value / 4, f"{value / 4:g}") for value in range(5)]),
        _el("path", class_="threshold open", d=f"M{frame.left} {frame.y(threshold)}H{frame.right}"
            f"M{frame.x(threshold)} {frame.top}V{frame.foot}"),
    ]  # fmt: skip
    for one in spots:
        # Labels stand a little apart, so that one does not hide the other.
        x = frame.x(one.before) + {"attack": -2.5, "benign": 2.5}.get(one.form, 0.0)
        size = (3.5 + log2(one.count)) / 5
        sign = SHAPES[{"attack": 2, "benign": 0}.get(one.form, 1)]
        place = f"translate({x:.1f} {frame.y(one.after)}) scale({size:.2f})"
        drawn = _el("path", d=sign, transform=place)
        parts.append(_leading(one.form, one.query, one.label, drawn, can_tab=len(spots) <= MOST_STOPS))
    return _svg(SIDE, SIDE, "F in the end over F of round 1", *parts, role="group")


def _thinned(points: Sequence[CurvePoint], most: int) -> Sequence[CurvePoint]:
    """So many of the points at most, evenly."""
    return points[:: max(1, -(-len(points) // most))]


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
    "into an attack they had missed": 0,
    "out of a false alarm": 2,
    "out of an attack they had seen": 1,
    "into a false alarm": 4,
}
"""What a voice was talked into or out of, with its colour."""
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


def _plot(name: str, title: str, description: str, drawing: Markup) -> Plot:
    told = description or title
    return Plot(name=name, title=title, description=told, caption=CAPTIONS[name], drawing=str(drawing))


def _curves(figures: RunFigures) -> Iterator[Plot]:
    drawn = [(number, arm) for number, arm in enumerate(figures.arms) if arm.curve.points]
    if not drawn:
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
    yield _plot("roc", "Attacks found against false alarms (ROC)", areas, roc_svg(lines))
    frame = _Frame(foot=HEIGHT)
    parts = [*frame.up("alarms that are attacks", _shares()), *frame.across(RATES[0], _shares())]
    for number, arm in drawn:
        known = (
            (frame.x(at.recall), frame.y(at.precision))
            for at in (*_thinned(arm.curve.points, MOST_STEPS), arm.curve.points[-1])
            if at.precision is not None
        )
        parts.append(_arm(number, _path(known, number)))
    parts += _legend(HEIGHT + BELOW + 4, ((number, _dash(number), _called(arm.arm)) for number, arm in drawn))
    height = HEIGHT + BELOW + LINE * len(drawn)
    title = "Precision against attacks found"
    yield _plot("precision", title, areas, _svg(SIDE, height, title, *parts))


def _rows(figures: RunFigures, names: Sequence[str]) -> tuple[_Frame, list[Markup]]:
    """A row for each arm, its name on the left."""
    left = 14 + LETTER * max(len(_called(name)) for name in names)
    frame = _Frame(left=left, right=left + SIDE - LEFT - RIGHT, top=0, foot=ROW * len(names) + 6)
    texts = [
        _text(left - 8, ROW * (place + 0.5) + 4, _called(name), "end") for place, name in enumerate(names)
    ]
    return frame, texts


def _rates(figures: RunFigures) -> Plot:
    frame, parts = _rows(figures, [arm.arm for arm in figures.arms])
    for value, _ in _shares():
        d = f"M{frame.x(value)} 0V{frame.foot}"
        parts.append(_el("path", class_="gridline", d=d, stroke="#e4e4e0"))
    told = []
    for place, arm in enumerate(figures.arms):
        got = arm.performance.at_threshold
        for number, (rate, of) in enumerate(zip(RATES, (got.recall, got.false_alarm_rate), strict=True)):
            if of.value is None:
                continue
            told.append(f"{arm.arm}: {rate} {of.value:.1%}")
            parts.append(_arm(number, *_estimate(frame, of, ROW * place + 12 + 11 * number, number * 2)))
    parts += frame.across(f"share at F ≥ {figures.threshold:g}", _shares())
    parts += _legend(
        frame.foot + BELOW + 4, ((at, _mark(at * 2, 0, 0), rate) for at, rate in enumerate(RATES))
    )
    size = frame.right + RIGHT, frame.foot + BELOW + 2 * LINE
    title = "Attacks found and false alarms, with 95% intervals"
    return _plot("rates", title, "; ".join(told), _svg(*size, title, *parts))


def _estimate(frame: _Frame, of: Estimate, y: float, shape: int) -> Iterator[Markup]:
    if of.low is not None and of.high is not None:
        d = f"M{frame.x(of.low)} {y}H{frame.x(of.high)}"
        yield _el("path", class_="span", d=d, stroke="currentColor", stroke_width=2)
    yield _mark(shape, frame.x(of.value or 0.0), y)


def _families(figures: RunFigures) -> Iterator[Plot]:
    found: dict[str, dict[str, Estimate]] = {}
    alarmed: dict[str, dict[str, Estimate]] = {}
    for arm in figures.arms:
        for group in arm.by_family:
            of = group.performance
            share = of.at_threshold.recall if of.attacks else of.at_threshold.false_alarm_rate
            if share.value is not None:
                (found if of.attacks else alarmed).setdefault(group.name, {})[arm.arm] = share
    if found:
        yield _heat(figures, "families", "Attacks found, family by family", found)
    if alarmed:
        yield _heat(figures, "benign-families", "False alarms, family by family", alarmed)


def _heat(figures: RunFigures, name: str, title: str, rows: dict[str, dict[str, Estimate]]) -> Plot:
    arms, families = [arm.arm for arm in figures.arms], sorted(rows)
    left = 14 + LETTER * max(len(_called(family)) for family in families)
    top = 14 + LETTER * 0.5 * max(len(_called(arm, 26)) for arm in arms)
    right = left + COLUMN * len(arms) + LETTER * 0.87 * len(_called(arms[-1], 26)) - COLUMN / 2
    parts = []
    for place, arm in enumerate(arms):
        there = f"translate({left + COLUMN * (place + 0.5) - 6:.1f} {top - 6:.1f}) rotate(-30)"
        parts.append(_el("g", _text(0, 0, _called(arm, 26)), transform=there))
    for row, family in enumerate(families):
        y = top + 24 * row
        parts.append(_text(left - 8, y + 16, _called(family), "end"))
        for place, arm in enumerate(arms):
            of = rows[family].get(arm)
            if of is None or of.value is None:
                continue
            x, is_full = left + COLUMN * place, of.value > 0.6
            box = _el("rect", class_="heat", x=round(x, 1), y=round(y, 1), width=COLUMN - 2, height=22,
                      fill="currentColor", fill_opacity=round(of.value, 3))  # fmt: skip
            name_of, fill = ("over", "#fff") if is_full else ("under", "#1d1d1b")
            words = _text(x + COLUMN / 2, y + 16, f"{of.value:.0%}", "middle", name=name_of, fill=fill)
            parts.append(_arm(0, box, words))
    told = [
        f"{family}, {arm}: {of.value or 0:.0%} of {of.n}"
        for family in families
        for arm, of in rows[family].items()
    ]
    size = max(right, left + COLUMN * len(arms)) + 4, top + 24 * len(families) + 4
    return _plot(name, title, "; ".join(told[:80]), _svg(*size, title, *parts))


Course = tuple[int, str, list[tuple[int, Estimate, Estimate]]]
"""The number and name of an arm, and its two rates after each step."""


def _rounds(figures: RunFigures) -> Iterator[Plot]:
    courses: list[Course] = [
        (number, arm.arm, [(at, of.recall, of.false_alarm_rate) for at, of in enumerate(arm.by_round, 1)])
        for number, arm in enumerate(figures.arms)
        if len(arm.by_round) > 1
    ]
    yield from _two_rates("rounds", "What each round adds", "after round", "after round {}", courses)


def _sizes(figures: RunFigures) -> Iterator[Plot]:
    courses: list[Course] = [
        (number, arm.arm, [(of.size, of.recall, of.false_alarm_rate) for of in arm.by_size])
        for number, arm in enumerate(figures.arms)
        if arm.kind in ("fire_circle", "parallel", "clones")
    ]
    title = "What more voices buy and cost, before they talk"
    yield from _two_rates("sizes", title, "voices in the circle", "{} voices", courses)


def _two_rates(name: str, title: str, axis: str, step: str, courses: Sequence[Course]) -> Iterator[Plot]:
    """Two panels, each with its own scale: attacks found and false alarms."""
    parts: list[Markup] = []
    told: list[str] = []
    width, drawn = SIDE / 2 + 40, set[int]()
    for panel, rate in enumerate(RATES):
        of_panel = [
            (number, arm, [(at, of[panel].value) for at, *of in steps if of[panel].value is not None])
            for number, arm, steps in courses
        ]
        values = [(at, value or 0.0) for _, _, steps in of_panel for at, value in steps]
        if not values:
            continue
        scale = _shares(max(value for _, value in values))
        left = LEFT + width * panel
        ends = min(at for at, _ in values), max(at for at, _ in values)
        frame = _Frame(left=left, right=left + width - LEFT - RIGHT, top=TOP, foot=HEIGHT * 2 / 3,
                       least_x=ends[0], most_x=ends[1], most_y=scale[-1][0])  # fmt: skip
        parts += frame.up(rate, scale)
        parts += frame.across(axis, ((at, str(at)) for at in range(ends[0], ends[1] + 1)))
        for number, arm, steps in of_panel:
            if steps:
                drawn.add(number)
                there = [(frame.x(at), frame.y(value or 0.0)) for at, value in steps]
                marks = [_mark(number, x, y) for x, y in there]
                parts.append(_arm(number, _path(there, number), *marks))
                told += [f"{arm}, {step.format(at)}: {rate} {value:.1%}" for at, value in steps]
    if not parts:
        return
    foot = HEIGHT * 2 / 3 + BELOW
    entries = [(number, _dash(number) + _mark(number, 0, 0), _called(arm)) for number, arm, _ in courses
               if number in drawn]  # fmt: skip
    size = LEFT + 2 * width - RIGHT, foot + LINE * len(entries)
    parts += _legend(foot + 4, entries)
    yield _plot(name, title, "; ".join(told), _svg(*size, title, *parts))


def _opinions(figures: RunFigures) -> Iterator[Plot]:
    counts = {
        arm.arm: (of.rescued_attacks, of.false_alarms_cleared, of.lost_attacks, of.false_alarms_spread)
        for arm in figures.arms
        if (of := arm.flips) is not None
    }
    if not any(map(any, counts.values())):
        return
    most = max(max(sum(row[:2]), sum(row[2:])) for row in counts.values())
    frame, parts = _rows(figures, list(counts))
    middle, unit = (frame.left + frame.right) / 2, (frame.right - frame.left) / 2 / most
    told = []
    for place, (arm, row) in enumerate(counts.items()):
        y = ROW * place + 7
        for side, pair in ((1, (0, 1)), (-1, (2, 3))):
            at = middle
            for which in pair:
                wide = row[which] * unit
                x = at if side > 0 else at - wide
                at += side * wide
                if not wide:
                    continue
                box = _el("rect", class_="heat", x=round(x, 1), y=y, width=round(wide, 1), height=20,
                          fill="currentColor")  # fmt: skip
                number = _text(x + wide / 2, y + 14, str(row[which]), "middle", name="over", fill="#fff")
                parts.append(_arm(list(TALKED.values())[which], box, number if wide > 16 else Markup("")))
        told += [f"{arm}: {count} {what}" for what, count in zip(TALKED, row, strict=True)]
    parts.append(_el("path", class_="gridline", d=f"M{middle:.1f} 0V{frame.foot}", stroke="#888"))
    parts.append(_text(middle - 8, frame.foot + 15, "talked wrong", "end"))
    parts.append(_text(middle + 8, frame.foot + 15, "talked right"))
    parts += _legend(frame.foot + BELOW, ((colour, _mark(1, 0, 0), what) for what, colour in TALKED.items()))
    title = "What the discussion did to single voices"
    size = frame.right + RIGHT, frame.foot + BELOW + LINE * len(TALKED)
    yield _plot("opinions", title, "; ".join(told), _svg(*size, title, *parts))


def _costs(figures: RunFigures) -> Iterator[Plot]:
    def spent(arm: ArmFigures) -> tuple[float, str] | None:
        if arm.spent.cost_usd:
            return arm.spent.cost_usd / max(arm.prompts, 1), "US dollars a prompt"
        if arm.spent.tokens_in:
            return (arm.spent.tokens_in + arm.spent.tokens_out) / max(arm.prompts, 1), "tokens a prompt"
        return (arm.spent.calls / max(arm.prompts, 1), "calls a prompt") if arm.spent.calls else None

    spendings = [spent(arm) for arm in figures.arms]
    units = {spending[1] for spending in spendings if spending}
    drawn = [
        (number, arm.arm, spending[0], recall)
        for number, (arm, spending) in enumerate(zip(figures.arms, spendings, strict=True))
        if spending and (recall := arm.performance.recall_at_5_percent.value) is not None
    ]
    if len(units) != 1 or len(drawn) < 2:
        return
    steps = _steps(max(cost for _, _, cost, _ in drawn))
    frame = _Frame(foot=HEIGHT, most_x=steps[-1])
    parts = [*frame.up("attacks found at 5% false alarms", _shares())]
    parts += frame.across(units.pop(), ((value, f"{value:.4g}") for value in steps))
    parts += [_arm(number, _mark(number, frame.x(cost), frame.y(found))) for number, _, cost, found in drawn]
    foot = HEIGHT + BELOW + 4
    parts += _legend(foot, ((number, _mark(number, 0, 0), _called(arm)) for number, arm, _, _ in drawn))
    told = "; ".join(f"{arm}: {cost:.3g} for {found:.1%}" for _, arm, cost, found in drawn)
    title = "What detection costs"
    yield _plot("cost", title, told, _svg(SIDE, HEIGHT + BELOW + LINE * len(drawn), title, *parts))
