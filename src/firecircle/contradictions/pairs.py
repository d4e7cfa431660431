"""What two directives show together: an order against a ban, two numbers, two values of one thing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from firecircle.contradictions.clashes import found_clashes
from firecircle.contradictions.directives import OF_REPLIES, PART, Directive, Found
from firecircle.contradictions.kinds import MEANINGS
from firecircle.contradictions.lexicon import Dimension, lexicon

ALIKE, VERY_ALIKE, STATED_TWICE, NEARLY_THE_SAME = 0.3, 0.45, 0.55, 0.65
"""Similarity of two clauses for the encoder, from which on they may be about the same."""
SHARED = 0.66
"""Share of the shorter clause's words that the other has."""


def found_in_pairs(directives: Sequence[Directive]) -> Iterator[Found]:
    """Every pair that a rule explains, some of them by several rules, and pairs that score high enough."""
    if not directives:
        return
    likeness = likeness_of(directives)
    choices = [_choices(directive) for directive in directives]
    for (i, first), (j, second) in combinations(enumerate(directives), 2):
        if first.start == second.start:
            continue
        yield from (
            found
            for found in (
                _different_numbers(first, second, likeness[i][j]),
                *_dimensions(first, second, choices[i], choices[j], likeness[i][j]),
            )
            if found is not None
        )
    yield from found_clashes(directives, likeness)


def likeness_of(directives: Sequence[Directive]) -> NDArray[np.float64]:
    """How alike the clauses are for the multilingual encoder, without their negations."""
    from firecircle.voices.embedded.learned.unpacked import sentence_vectors

    negative = lexicon().negative
    rows = sentence_vectors([negative.sub(" ", of.plain).strip() or of.text for of in directives])
    return (rows @ rows.T).astype(np.float64)


_CASES = ("for", "to", "in", "during", "at")
"""The words that a limit to some cases begins with, as far as forms and manners are concerned."""


def _different_numbers(first: Directive, second: Directive, alike: float) -> Found | None:
    """The same thing with two numbers that exclude each other."""
    if first.excepts or second.excepts:
        return None
    for a in first.amounts if len(first.amounts) == len(second.amounts) == 1 else ():
        for b in second.amounts:
            differ = a.excludes(b) or (a.unit == "time" and a.high != b.high and alike >= STATED_TWICE)
            if a.unit != b.unit or not differ or not _same_thing(first, second, a.unit, alike):
                continue
            return "numbers", first, second, f"{MEANINGS['numbers']}: {a.said} and {b.said}"
    return None


def _same_thing(first: Directive, second: Directive, unit: str, alike: float) -> bool:
    if first.whole_reply and second.whole_reply:
        return True
    if (first.whole_reply or second.whole_reply) and unit in OF_REPLIES:
        return not PART.search(first.text) and not PART.search(second.text)
    one, two = (each.words() - {unit} for each in (first, second))
    small, large = sorted((one, two), key=len)
    if not small and unit in OF_REPLIES:
        return len(large) <= 1 and alike >= VERY_ALIKE
    if not small or alike < ALIKE:
        return False
    if len(small & large) / len(small) < SHARED and not (small & large and alike >= VERY_ALIKE):
        return False
    if (one - two) and (two - one) and len(one & two) < 2 and alike < NEARLY_THE_SAME:
        return False
    ignored = frozenset((unit,))
    for each, other in ((first, second), (second, first)):
        known = other.words() | other.when | ignored
        if any(words - ignored and not words & known for words in each.about.values()):
            return False
        if each.conditional and not each.when & known:
            return False
    if first.conditional and second.conditional and first.when != second.when:
        return False
    return not first.differs_in_subject(second)


_Choices = dict[str, tuple[str, bool]]


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
