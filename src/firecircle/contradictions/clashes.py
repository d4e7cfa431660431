"""How likely two passages exclude each other: an order and a ban, two numbers, or opposite words.

A pair is scored by signs such as how alike the clauses are, also among all pairs of the text, and what they
share. `training.contradictions` fits the weight of each sign.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import combinations
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firecircle.contradictions.directives import WORD, Directive, Found, content_of
from firecircle.contradictions.kinds import MEANINGS, ContradictionKind
from firecircle.contradictions.lexicon import lexicon

SIGNS = (
    "opposite_words",
    "numbers",
    "likeness",
    "share",
    "shared",
    "universal",
    "likeness_of_order_and_ban",
    "shared_by_order_and_ban",
    "mutually_nearest",
    "nearest",
    "above_usual",
    "length",
    "excepts",
    "other_subject",
    "other_heading",
    "goes_on",
    "redirects",
    "each_its_own",
)
SHORTEST = 12
"""Clauses below which a text says little about what is usual in it."""
ALIKE, USUAL = 0.3, 0.1
MOST_COUNTED = 2
MOST_SHARED = 3


class Clash(NamedTuple):
    """Two clauses that may exclude each other, and the signs of it."""

    first: int
    second: int
    opposites: tuple[str, str] | None
    is_of_numbers: bool
    signs: tuple[float, ...]


def likeness_of(directives: Sequence[Directive]) -> NDArray[np.float64]:
    """How alike the clauses are for the multilingual encoder, without their negations."""
    from firecircle.voices.embedded.learned.unpacked import sentence_vectors

    negative = lexicon().negative
    rows = sentence_vectors([negative.sub(" ", of.plain).strip() or of.text for of in directives])
    return (rows @ rows.T).astype(np.float64)


def found_clashes(directives: Sequence[Directive], likeness: NDArray[np.float64]) -> Iterator[Found]:
    """The pairs that score above the threshold."""
    weights, threshold = _weights()
    for clash in clashes_in(directives, likeness):
        if float(np.dot(clash.signs, weights)) >= threshold:
            yield _found(directives[clash.first], directives[clash.second], clash)


def clashes_in(directives: Sequence[Directive], likeness: NDArray[np.float64]) -> Iterator[Clash]:
    """Every pair that differs in polarity, in a number, or by words that exclude each other."""
    opposites = [_opposites_in(directive.text) for directive in directives]
    alike = likeness.copy()
    starts = np.array([directive.start for directive in directives])
    alike[starts[:, None] == starts] = -1.0
    is_short = len(directives) < SHORTEST
    rank = (-alike).argsort(axis=1).argsort(axis=1)
    usual = float(np.median(alike[alike > -1.0])) if not is_short else USUAL
    for (i, first), (j, second) in combinations(enumerate(directives), 2):
        if first.start == second.start:
            continue
        pairs = _opposed(opposites[i], opposites[j])
        are_opposed = first.negative != second.negative
        is_of_numbers = any(a.unit == b.unit and a.excludes(b) for a in first.amounts for b in second.amounts)
        if not (pairs or are_opposed or is_of_numbers):
            continue
        one, two = first.words() | first.when, second.words() | second.when
        own = min(len(first.core - two), len(second.core - one))
        other_place = any(
            not words & second.about[place] for place, words in first.about.items() if place in second.about
        )
        other_condition = first.when - second.when and second.when - first.when
        if other_condition or other_place or (own and is_short and not (pairs or is_of_numbers)):
            continue
        shared = len(one & two)
        signs = {
            "opposite_words": min(len(pairs), MOST_COUNTED),
            "numbers": is_of_numbers,
            "likeness": alike[i, j],
            "share": shared / max(1, min(len(one), len(two))),
            "shared": min(shared, MOST_SHARED),
            "universal": first.universal + second.universal,
            "likeness_of_order_and_ban": are_opposed * alike[i, j],
            "shared_by_order_and_ban": are_opposed * min(shared, MOST_SHARED),
            "mutually_nearest": alike[i, j] > ALIKE and rank[i, j] == rank[j, i] == 0,
            "nearest": alike[i, j] > ALIKE and (rank[i, j] == 0 or rank[j, i] == 0),
            "above_usual": alike[i, j] - usual,
            "length": log(max(len(directives), SHORTEST)),
            "excepts": first.excepts or second.excepts,
            "other_subject": first.differs_in_subject(second),
            "other_heading": first.heading != second.heading,
            "goes_on": j == i + 1 and first.row == second.row,
            "each_its_own": min(own, MOST_SHARED),
            "redirects": any(lexicon().redirects.search(each.text) for each in (first, second)),
        }
        yield Clash(i, j, next(iter(pairs), None), is_of_numbers, tuple(float(signs[name]) for name in SIGNS))


_Opposites = tuple[tuple[str, str], ...]


def _opposites_in(text: str) -> _Opposites:
    """For each pair of opposites the words of the text that are on either side; empty for none."""
    found = ((one.search(text), other.search(text)) for one, other in lexicon().opposites)
    return tuple((one[0] if one else "", other[0] if other else "") for one, other in found)


def _opposed(first: _Opposites, second: _Opposites) -> list[tuple[str, str]]:
    """The words of both texts that exclude each other, but not where both say both."""
    return [
        (one, also_other) if one and also_other else (other, also_one)
        for (one, other), (also_one, also_other) in zip(first, second, strict=True)
        if bool(one and also_other) != bool(other and also_one)
    ]


def _found(first: Directive, second: Directive, clash: Clash) -> Found:
    kind: ContradictionKind = "direct"
    if clash.is_of_numbers:
        kind = "numbers"
    elif first.negative != second.negative:
        ban, order = (first, second) if first.negative else (second, first)
        kind = "scope" if ban.is_limited_beyond(order) else "direct"
    if clash.opposites and not clash.is_of_numbers:
        one, other = clash.opposites
        return kind, first, second, f"one passage says “{one}”, the other “{other}”"
    shared = (first.words() | first.when) & (second.words() | second.when)
    named = " ".join(dict.fromkeys(word for word in WORD.findall(first.plain) if content_of(word) & shared))
    return kind, first, second, f"{MEANINGS[kind]}: {named}" if named else MEANINGS[kind]


@cache
def _weights() -> tuple[NDArray[np.float64], float]:
    source = resources.files(__package__).joinpath("clashes.json")
    document = json.loads(source.read_text("utf-8"))
    return np.array([document["weights"][name] for name in SIGNS]), float(document["threshold"])
