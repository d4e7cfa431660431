"""What counts as a number between 0 and 1, and what does not: nothing is clamped, nothing is guessed."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

DECIMAL = r"(?:[0-9]+(?:[.,][0-9]+)?|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?"
SCALE = r"(?:\s{0,3}%|\s{0,3}(?:/|out\s{1,3}of)\s{0,3}(?:100|10|1)(?:\.0+)?(?![0-9.,]*[0-9]))"

_FIGURE = re.compile(
    rf"\s*[~≈+]?\s*(?P<number>{DECIMAL})(?P<scale>{SCALE})?\s*(?:[-–—(,;:][^0-9]*)?", re.IGNORECASE
)
_DECLARED = re.compile(
    r"\bscale\b[^0-9\n]{0,20}(?<![0-9.])0\s*(?:-|–|—|to)\s*(?P<after>100?)(?![0-9.,]*[0-9])"
    r"|(?<![0-9.,])0\s*(?:-|–|—|to)\s*(?P<before>100?)\s+scale\b",
    re.IGNORECASE,
)


class Figure(NamedTuple):
    """A number as it was written, and the scale written beside it: 1, 10, 100, or None when there is none."""

    value: float
    scale: int | None = None


class Scores(NamedTuple):
    """Three numbers in [0, 1]."""

    truth: float
    indeterminacy: float
    falsehood: float
    imputed: tuple[str, ...] = ()


def figure(value: object) -> Figure | None:
    """The number a JSON value stands for: a number, or a text such as `0.7`, `7/10`, `70%`."""
    if type(value) is float and 0 <= value <= 1:  # as nearly all are
        return Figure(value)
    if isinstance(value, str):
        match = _FIGURE.fullmatch(value) if len(value) <= 200 else None
        return written_figure(match["number"], match["scale"]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return Figure(number) if math.isfinite(number) and number >= 0 else None


def written_figure(number: str, scale: str | None) -> Figure | None:
    """The number of a text that matched `DECIMAL`, with the `SCALE` beside it."""
    value = float(number.replace(",", "."))
    if not math.isfinite(value):
        return None
    if not scale:
        return Figure(value)
    return Figure(value, 100 if "%" in scale else int(float(scale.lower().split("of")[-1].strip("/ \t\n"))))


def declared_scale(text: str) -> int | None:
    """The scale, 10 or 100, that a text says its numbers are on."""
    match = _DECLARED.search(text)
    return int(match["after"] or match["before"]) if match else None


def settled(
    truth: Figure | None,
    indeterminacy: Figure | None,
    falsehood: Figure | None,
    declared: Callable[[], int | None],
) -> Scores | None:
    """Three figures as scores, or None when falsehood is not stated by them.

    Another scale than [0, 1] is accepted only when all three figures are on it. `declared` tells the scale
    named elsewhere; it is asked only when a figure above 1 shows that there must be one. Where it was named
    and the three do not fit it, a 1 may mean a tenth of what it seems to: then falsehood is not stated.
    """
    if truth and indeterminacy and falsehood:  # as nearly all replies state them
        values = (truth.value, indeterminacy.value, falsehood.value)
        if truth.scale is indeterminacy.scale is falsehood.scale is None and max(values) <= 1:
            return Scores(*values)
    given = [each for each in (truth, indeterminacy, falsehood) if each]
    scales = {each.scale for each in given}
    if scales == {None} and any(each.value > 1 for each in given):
        scale = declared()
        if scale and (len(given) < 3 or any(each.value > scale for each in given)):
            return None
    else:
        scale = scales.pop() if len(scales) == 1 and len(given) == 3 else None
    if scale in (10, 100) and all(each.value <= scale for each in given):
        first, second, third = (each.value / scale for each in given)
        return Scores(first, second, third)
    plain_truth, plain_indeterminacy, plain_falsehood = map(_plain, (truth, indeterminacy, falsehood))
    if plain_falsehood is None:
        return None
    imputed = []
    if plain_truth is None:
        plain_truth = 1.0 - plain_falsehood
        imputed.append("truth")
    if plain_indeterminacy is None:
        plain_indeterminacy = 0.5
        imputed.append("indeterminacy")
    return Scores(plain_truth, plain_indeterminacy, plain_falsehood, tuple(imputed))


def _plain(written: Figure | None) -> float | None:
    if written is None or written.scale not in (None, 1) or written.value > 1:
        return None
    return written.value
