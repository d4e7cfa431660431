"""Two clauses that choose different values of what can have only one, such as the format of replies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from firecircle.contradictions.directives import Directive, Found
from firecircle.contradictions.kinds import MEANINGS
from firecircle.contradictions.lexicon import Dimension, lexicon

ALIKE = 0.3
"""Similarity of two clauses for the encoder, from which on they may be about the same."""
_CASES = ("for", "to", "in", "during", "at")
"""The words that a limit to some cases begins with, as far as forms and manners are concerned."""
_Choices = dict[str, tuple[str, bool]]


def found_choices(directives: Sequence[Directive], likeness: NDArray[np.float64]) -> Iterator[Found]:
    """Every such pair."""
    choices = [_choices(directive) for directive in directives]
    for (i, first), (j, second) in combinations(enumerate(directives), 2):
        if first.start != second.start:
            yield from _dimensions(first, second, choices[i], choices[j], float(likeness[i, j]))


def _choices(directive: Directive) -> _Choices:
    """The values that a clause speaks of, by dimension, and whether it chooses or forbids each."""
    chosen = {}
    for dimension in lexicon().dimensions:
        if choice := _chosen(dimension, directive):
            chosen[dimension.name] = choice
    return chosen


def _dimensions(
    first: Directive, second: Directive, one: _Choices, two: _Choices, alike: float
) -> Iterator[Found]:
    """Two values of what can have only one."""
    for dimension in lexicon().dimensions if one.keys() & two.keys() else ():
        if dimension.name not in one or dimension.name not in two:
            continue
        (value, is_chosen), (other, is_also_chosen) = one[dimension.name], two[dimension.name]
        if (value == other) == (is_chosen == is_also_chosen) or not (is_chosen or is_also_chosen):
            continue
        if first.excepts or second.excepts or _apart(first, second):
            continue
        shared = (first.words() | first.when) & (second.words() | second.when)
        if dimension.same_topic and not (first.universal or second.universal or (shared and alike >= ALIKE)):
            continue
        yield dimension.kind, first, second, f"{MEANINGS[dimension.kind]}: {dimension.name}"


def _chosen(dimension: Dimension, directive: Directive) -> tuple[str, bool] | None:
    """The value that a clause speaks of, and whether it chooses or forbids it; None for none or several."""
    matches = {name: at for name, value in dimension.values.items() if (at := value.search(directive.text))}
    # "Do not ask first" holds "ask first": the longer words count.
    found = [
        (name, match)
        for name, match in matches.items()
        if not any(
            other is not match and other.start() <= match.start() and match.end() <= other.end()
            for other in matches.values()
        )
    ]
    if len(found) != 1:
        return None
    [(name, match)] = found
    others = dimension.values.keys() - {name}
    if dimension.kind == "format" and any(re.search(rf"\b{each}\b", directive.text) for each in others):
        return None
    before = directive.text[max(0, match.start() - 30) : match.start()].rpartition(",")[2]
    is_negated = bool(lexicon().negative.search(before)) or before.endswith("no ")
    return (name, not is_negated) if dimension.negated or not is_negated else None


def _apart(first: Directive, second: Directive) -> bool:
    """Whether both are limited, and to different cases."""
    return first.is_limited_beyond(second, _CASES) and second.is_limited_beyond(first, _CASES)
