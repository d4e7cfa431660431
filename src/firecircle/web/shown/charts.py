"""Charts as plain geometry; templates write the labels, so that they are escaped like any other text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from statistics import fmean, pstdev

from markupsafe import Markup

from firecircle.circle.panel import Panel
from firecircle.circle.result import CallRecord, FireCircleResult
from firecircle.conversation.arc import Conversation
from firecircle.telling.safe_text import name_with_codes
from firecircle.telling.table import VoiceRow

WIDTH, HEIGHT = 600, 290
LEFT, RIGHT, TOP, BOTTOM = 34, 186, 10, 26
LABEL_APART = 13
LEADER = 18
"""Room for the thin line that leads from the last dot of a voice to its name."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One answer on the chart, and the words for it."""

    x: float
    y: float
    round_number: int
    label: str


@dataclass(frozen=True, slots=True)
class Step:
    """The way from one round to the next."""

    x1: float
    y1: float
    x2: float
    y2: float
    round_number: int

    @property
    def ends(self) -> Markup:
        """Where it begins and ends, and its round, as attributes of a line."""
        return Markup(
            f'x1="{self.x1}" y1="{self.y1}" x2="{self.x2}" y2="{self.y2}" data-round="{self.round_number}"'
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One voice's falsehood over the rounds."""

    name: str
    dots: tuple[Dot, ...]
    steps: tuple[Step, ...]
    label_x: float
    label_y: float
    lost: int | None
    """The round in which the voice was lost."""


@dataclass(frozen=True, slots=True)
class RoundMean:
    """The mean F of a round over the voices that were heard in every round, so that rounds compare."""

    round_number: int
    mean: float
    spread: float | None
    """One standard deviation; None for a single voice."""
    voices: int

    @property
    def words(self) -> str:
        """The mean and its spread."""
        return f"{self.mean:.2f}" if self.spread is None else f"{self.mean:.2f} ± {self.spread:.2f}"


def steady_means(result: FireCircleResult) -> tuple[RoundMean, ...]:
    """The mean of each round over the voices heard in all of them; a loss does not move it."""
    rounds = [
        (held.round_number, {answer.model: answer.falsehood for answer in held.evaluations})
        for held in result.dialogue_history
        if held.evaluations
    ]
    steady = set.intersection(*(set(said) for _, said in rounds)) if rounds else set()
    return tuple(
        RoundMean(
            number,
            fmean(said[model] for model in steady),
            pstdev(said[model] for model in steady) if len(steady) > 1 else None,
            len(steady),
        )
        for number, said in (rounds if steady else [])
    )


SCALE_WIDTH, SCALE_EDGE, SCALE_LINE, DOT = 620, 10, 34, 5.5
"""The scale of the verdict in its own units: its width, its margins, its line, and a dot's radius."""


@dataclass(frozen=True, slots=True)
class ScaleDot:
    """The last F of a voice on the scale of the verdict."""

    x: float
    y: float
    colour: int
    name: str
    falsehood: float


@dataclass(frozen=True, slots=True)
class Scale:
    """Every voice between 0 and 1, and where the alarm begins."""

    dots: tuple[ScaleDot, ...]
    threshold_x: float


def scale_of(rows: Sequence[VoiceRow], colours: Mapping[str, int], threshold: float) -> Scale | None:
    """The last word of every voice on one line; voices with nearly the same F are above each other."""

    def x(value: float) -> float:
        return round(SCALE_EDGE + value * (SCALE_WIDTH - 2 * SCALE_EDGE), 1)

    heard = [(row.model, falsehood) for row in rows if (falsehood := _last_falsehood(row)) is not None]
    placed: list[ScaleDot] = []
    for model, falsehood in sorted(heard, key=lambda one: one[1]):
        below = [dot.y for dot in placed if abs(dot.x - x(falsehood)) < 2 * DOT]
        free = next(y for level in count() if (y := SCALE_LINE - level * 2 * DOT) not in below)
        placed.append(ScaleDot(x(falsehood), free, colours[model], model, falsehood))
    return Scale(tuple(placed), x(threshold)) if placed else None


def _last_falsehood(row: VoiceRow) -> float | None:
    said = (cell.evaluation for cell in reversed(row.cells) if cell is not None)
    return next((answer.falsehood for answer in said if answer), None)


@dataclass(frozen=True, slots=True)
class Convergence:
    """Falsehood of every voice by round, the mean with one standard deviation, and the alarm threshold."""

    width: int
    height: int
    lines: tuple[Line, ...]
    bands: tuple[tuple[str, int], ...]
    """Mean F and one standard deviation around it, from a round to that of the number."""
    means: tuple[Step, ...]
    threshold_y: float
    threshold: float
    threshold_label: Line
    """Where its words are: among the names, so that no line crosses them."""
    left: float
    right: float
    bottom: float
    ticks_x: tuple[tuple[float, int], ...]
    ticks_y: tuple[tuple[float, str], ...]
    description: str
    """The chart in a sentence, for those who do not see it."""
    averaged: tuple[RoundMean, ...]
    """Empty where no voice was heard in every round."""


def convergence(result: FireCircleResult) -> Convergence | None:
    """The chart of a circle with at least one answer."""
    rounds = [held for held in result.dialogue_history if held.evaluations]
    if not rounds:
        return None
    last = max(2, rounds[-1].round_number)

    def x(number: int) -> float:
        return round(LEFT + (number - 1) / (last - 1) * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(TOP + (1 - min(max(value, 0.0), 1.0)) * (HEIGHT - TOP - BOTTOM), 1)

    answers = [(held.round_number, answer) for held in rounds for answer in held.evaluations]
    models = dict.fromkeys(answer.model for _, answer in answers)
    lost = {failure.model: failure.round_number for failure in result.failures}
    lines = []
    for model in models:
        falsehoods = [(place, answer.falsehood) for place, answer in answers if answer.model == model]
        dots = tuple(
            Dot(x(r), y(f), r, f"{name_with_codes(model)}, round {r}: F {f:.2f}") for r, f in falsehoods
        )
        steps = tuple(Step(a.x, a.y, b.x, b.y, b.round_number) for a, b in pairwise(dots))
        lines.append(Line(model, dots, steps, dots[-1].x + 8, dots[-1].y, lost.get(model)))
    means = steady_means(result)
    edges = [
        (
            x(one.round_number),
            y(one.mean + (one.spread or 0)),
            y(one.mean),
            y(one.mean - (one.spread or 0)),
            one.round_number,
        )
        for one in means
    ]
    threshold = result.config.alarm_threshold
    end = WIDTH - RIGHT + 8
    threshold_label, *named = _spread_labels([Line("", (), (), end, y(threshold), None), *lines])
    return Convergence(
        width=WIDTH,
        height=HEIGHT,
        lines=tuple(named),
        bands=tuple(
            (f"{a[0]},{a[1]} {b[0]},{b[1]} {b[0]},{b[3]} {a[0]},{a[3]}", b[4]) for a, b in pairwise(edges)
        ),
        means=tuple(Step(a[0], a[2], b[0], b[2], b[4]) for a, b in pairwise(edges)),
        threshold_y=y(threshold),
        threshold=threshold,
        threshold_label=threshold_label,
        left=LEFT,
        right=WIDTH - RIGHT,
        bottom=HEIGHT - BOTTOM,
        ticks_x=tuple((x(number), number) for number in range(1, last + 1)),
        ticks_y=tuple((y(value / 4), f"{value / 4:g}") for value in range(5)),
        description="; ".join(f"round {one.round_number}: mean F {one.words}" for one in means),
        averaged=means,
    )


def _spread_labels(lines: list[Line]) -> tuple[Line, ...]:
    """Labels that do not lie on each other: each at least a line below the one above it, in one column."""
    column = max(line.label_x for line in lines) + LEADER
    floor = HEIGHT - 7.0
    placed: dict[str, float] = {}
    below = TOP + 4.0 - LABEL_APART
    for line in sorted(lines, key=lambda line: line.label_y):
        below = placed[line.name] = max(line.label_y, below + LABEL_APART)
    above = floor + LABEL_APART
    for line in sorted(lines, key=lambda line: -placed[line.name]):
        above = placed[line.name] = min(placed[line.name], above - LABEL_APART)
    return tuple(replace(line, label_x=column, label_y=round(placed[line.name], 1)) for line in lines)


LINE_WIDTH = 1000.0
"""The time line in its own units; the page stretches it."""
NARROWEST_CALL = 2.0


@dataclass(frozen=True, slots=True)
class CallBar:
    """One call."""

    call: CallRecord
    x: float
    width: float
    waited: float
    """The part of the width that was spent waiting to try again."""
    start_seconds: float

    @property
    def drawing(self) -> Markup:
        """The bar, and within it the time that was spent waiting."""
        kind = "bar failed" if self.call.failed else "bar"
        waited = (
            f'<path class="waited" d="M{self.x} 0h{self.waited}v10h-{self.waited}z"/>' if self.waited else ""
        )
        return Markup(
            '<svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">'
            f'<path class="rail" d="M0 0h1000v10H0z"/>'
            f'<path class="{kind}" d="M{self.x} 0h{self.width}v10h-{self.width}z"/>{waited}</svg>'
        )


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All calls, and the seconds the line spans."""

    bars: tuple[CallBar, ...]
    seconds: float

    @property
    def counted(self) -> bool:
        """Whether anybody said how many tokens a call took."""
        return any(bar.call.tokens_in is not None for bar in self.bars)


def waterfall(judged: FireCircleResult | Panel) -> Waterfall | None:
    """The line, from the first question on, with each call where it was made.

    In recordings that do not tell when, all voices of a round are asked as it opens, a voice's later calls
    follow its first, and calls outside of rounds the last of them.
    """
    if not judged.calls:
        return None
    opened = {1: 0.0}
    first = min((call.started_at for call in judged.calls if call.started_at is not None), default=0.0)
    if isinstance(judged, FireCircleResult) and judged.dialogue_history:
        first = judged.dialogue_history[0].timestamp
        opened = {held.round_number: held.timestamp - first for held in judged.dialogue_history}
    placed: list[tuple[CallRecord, float]] = []
    ends: dict[tuple[str, int], float] = {}
    for call in judged.calls:
        key = (call.model, call.round_number)
        if call.started_at is not None:
            start = max(0.0, call.started_at - first)
        elif key in ends:
            start = ends[key]
        else:
            start = max(0.0, opened.get(call.round_number, max(ends.values(), default=0.0)))
        ends[key] = start + call.latency_seconds
        placed.append((call, start))
    span = max(ends.values()) or 1.0
    bars = tuple(
        CallBar(
            call,
            round(min(start / span * LINE_WIDTH, LINE_WIDTH - NARROWEST_CALL), 1),
            round(max(NARROWEST_CALL, call.latency_seconds / span * LINE_WIDTH), 1),
            round(call.waited_seconds / span * LINE_WIDTH, 1),
            start,
        )
        for call, start in placed
    )
    return Waterfall(bars, span)


@dataclass(frozen=True, slots=True)
class TurnDot:
    """The falsehood of one turn of a conversation."""

    number: int
    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A conversation from left to right: what each turn is, what they add up to, and trust."""

    width: int
    height: int
    left: float
    right: float
    ticks_y: tuple[tuple[float, str], ...]
    threshold: float
    arc: str
    trust: str
    dots: tuple[TurnDot, ...]


TRAJECTORY_WIDTH, TRAJECTORY_HEIGHT = 720, 190
"""The names of turns are below the lines, and the threshold's words to the right of them."""


def trajectory(judged: Conversation) -> Trajectory:
    """The turns of a conversation as points."""
    right = TRAJECTORY_WIDTH - 100
    room = right - LEFT - 2 * LABEL_APART
    steps = max(1, len(judged.turns) - 1)

    def x(number: int) -> float:
        return round(LEFT + LABEL_APART + room * (number - 1) / steps, 1)

    def y(value: float) -> float:
        return round(TOP + (TRAJECTORY_HEIGHT - TOP - BOTTOM) * (1 - value), 1)

    return Trajectory(
        width=TRAJECTORY_WIDTH,
        height=TRAJECTORY_HEIGHT,
        left=LEFT,
        right=right,
        ticks_y=tuple((y(value / 4), f"{value / 4:g}") for value in range(5)),
        threshold=y(judged.alarm_threshold),
        arc=" ".join(f"{x(turn.number)},{y(turn.arc)}" for turn in judged.turns if turn.arc is not None),
        trust=" ".join(f"{x(turn.number)},{y(turn.trust)}" for turn in judged.turns),
        dots=tuple(
            TurnDot(
                turn.number,
                x(turn.number),
                y(turn.falsehood),
                f"turn {turn.number}: F {turn.falsehood:.2f}",
            )
            for turn in judged.turns
            if turn.falsehood is not None
        ),
    )
