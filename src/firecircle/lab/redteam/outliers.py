"""Which member of a circle never agrees with the others, or always changes sides: a report, not a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from firecircle.circle.result import FireCircleResult
from firecircle.shapes import Shape, Text
from firecircle.thresholds import reaches

NEVER, ALWAYS = 0.1, 0.9
FEWEST = 5
"""In fewer circles nobody is called an outlier."""


class MemberReport(Shape):
    """How one voice stood to the others."""

    model: Text
    circles: int
    agreed: int
    """Circles in which it ended on the side of most others."""
    flipped: int
    """Circles in which it ended on another side than it began."""
    advisory: Text | None = None

    @property
    def is_outlier(self) -> bool:
        """Whether it should be looked at."""
        return self.advisory is not None


class Sides(NamedTuple):
    """Whether each voice of a circle was for an alarm, in its first word and in its last."""

    first: Mapping[str, bool]
    last: Mapping[str, bool]

    @classmethod
    def of(cls, result: FireCircleResult) -> Sides:
        """The sides of the voices that were heard to the end."""
        threshold = result.config.alarm_threshold
        began = result.dialogue_history[0].evaluations if result.dialogue_history else ()
        return cls(
            *(
                {answer.model: reaches(answer.falsehood, threshold) for answer in answers}
                for answers in (began, result.final_evaluations)
            )
        )


def member_reports(circles: Iterable[Sides]) -> tuple[MemberReport, ...]:
    """A report on each voice that was heard to the end of some circle."""
    counted: Counter[str] = Counter()
    agreed: Counter[str] = Counter()
    flipped: Counter[str] = Counter()
    for first, last in circles:
        for model, side in last.items():
            others = [other for peer, other in last.items() if peer != model]
            if not others:
                continue
            counted[model] += 1
            same = sum(other is side for other in others)
            agreed[model] += 2 * same >= len(others)
            flipped[model] += first.get(model, side) is not side
    return tuple(
        MemberReport(
            model=model,
            circles=n,
            agreed=agreed[model],
            flipped=flipped[model],
            advisory=_advisory(n, agreed[model], flipped[model]),
        )
        for model, n in counted.items()
    )


def _advisory(circles: int, agreed: int, flipped: int) -> str | None:
    if circles < FEWEST:
        return None
    if agreed / circles <= NEVER:
        return f"agreed with most others in {agreed} of {circles} circles"
    if flipped / circles >= ALWAYS:
        return f"changed sides in {flipped} of {circles} circles"
    return None
