"""Charts as plain geometry; templates draw them, so that every label is escaped like any other text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from firecircle.circle.result import FireCircleResult

WIDTH, HEIGHT = 600, 290
LEFT, RIGHT, TOP, BOTTOM = 34, 170, 10, 26
LABEL_APART = 13


@dataclass(frozen=True, slots=True)
class Dot:
    """One answer on the chart, and the words for it."""

    x: float
    y: float
    round_number: int
    told: str


@dataclass(frozen=True, slots=True)
class Step:
    """The way from one round to the next."""

    x1: float
    y1: float
    x2: float
    y2: float
    round_number: int


@dataclass(frozen=True, slots=True)
class Line:
    """One voice's falsehood over the rounds; `number` picks its dash pattern and colour."""

    name: str
    number: int
    dots: tuple[Dot, ...]
    steps: tuple[Step, ...]
    label_x: float
    label_y: float
    lost: bool


@dataclass(frozen=True, slots=True)
class Convergence:
    """Falsehood of every voice by round, the mean with one standard deviation, and the alarm threshold."""

    width: int
    height: int
    lines: tuple[Line, ...]
    band: str
    mean: str
    threshold_y: float
    threshold: float
    left: float
    right: float
    bottom: float
    ticks_x: tuple[tuple[float, int], ...]
    ticks_y: tuple[tuple[float, str], ...]
    told: str
    """The chart in a sentence, for those who do not see it."""


def convergence(result: FireCircleResult) -> Convergence | None:
    """The chart of a circle with at least one answer."""
    held = [one for one in result.dialogue_history if one.evaluations]
    if not held:
        return None
    last = max(2, held[-1].round_number)

    def x(number: int) -> float:
        return round(LEFT + (number - 1) / (last - 1) * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(TOP + (1 - min(max(value, 0.0), 1.0)) * (HEIGHT - TOP - BOTTOM), 1)

    models = dict.fromkeys(said.model for one in held for said in one.evaluations)
    lost = {failure.model for failure in result.failures}
    lines = []
    for number, model in enumerate(models):
        said = [(one.round_number, s.falsehood) for one in held for s in one.evaluations if s.model == model]
        dots = tuple(Dot(x(r), y(f), r, f"{model}, round {r}: F {f:.2f}") for r, f in said)
        steps = tuple(Step(a.x, a.y, b.x, b.y, b.round_number) for a, b in pairwise(dots))
        lines.append(Line(model, number, dots, steps, dots[-1].x + 8, dots[-1].y, model in lost))
    metrics = result.round_metrics
    upper = [f"{x(m.round_number)},{y(m.f_score_mean + m.f_score_stddev)}" for m in metrics]
    lower = [f"{x(m.round_number)},{y(m.f_score_mean - m.f_score_stddev)}" for m in reversed(metrics)]
    threshold = result.config.alarm_threshold
    return Convergence(
        width=WIDTH,
        height=HEIGHT,
        lines=_spread_labels(lines),
        band=" ".join(upper + lower) if len(metrics) > 1 else "",
        mean=" ".join(f"{x(m.round_number)},{y(m.f_score_mean)}" for m in metrics),
        threshold_y=y(threshold),
        threshold=threshold,
        left=LEFT,
        right=WIDTH - RIGHT,
        bottom=HEIGHT - BOTTOM,
        ticks_x=tuple((x(number), number) for number in range(1, last + 1)),
        ticks_y=tuple((y(value / 4), f"{value / 4:g}") for value in range(5)),
        told="; ".join(
            f"round {m.round_number}: mean F {m.f_score_mean:.2f}, spread {m.f_score_stddev:.2f}"
            for m in metrics
        ),
    )


def _spread_labels(lines: list[Line]) -> tuple[Line, ...]:
    """Labels that do not lie on each other: each at least a line below the one above it, in one column."""
    column = max(line.label_x for line in lines)
    floor = HEIGHT - 4.0
    placed: dict[str, float] = {}
    below = TOP + 4.0 - LABEL_APART
    for line in sorted(lines, key=lambda one: (one.label_y, one.number)):
        below = placed[line.name] = max(line.label_y, below + LABEL_APART)
    above = floor + LABEL_APART
    for line in sorted(lines, key=lambda one: -placed[one.name]):
        above = placed[line.name] = min(placed[line.name], above - LABEL_APART)
    return tuple(replace(one, label_x=column, label_y=round(placed[one.name], 1)) for one in lines)
