"""What two directives show together: an order against a ban, two numbers, two values of one thing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from firecircle.contradictions.directives import OF_REPLIES, PART, WORD, Directive, Found, content_of
from firecircle.contradictions.kinds import MEANINGS, ContradictionKind
from firecircle.contradictions.lexicon import Dimension, lexicon

ALIKE, VERY_ALIKE, STATED_TWICE, NEARLY_THE_SAME = 0.3, 0.45, 0.55, 0.65
"""Similarity of two clauses for the encoder, from which on they may be about the same."""
SHARED = 0.66
"""Share of the shorter clause's words that the other has."""


def found_in_pairs(directives: Sequence[Directive]) -> Iterator[Found]:
    """Every pair that a rule explains, some of them by several rules."""
    likeness = _likeness([directive.plain for directive in directives])
    choices = [_choices(directive) for directive in directives]
    for (i, first), (j, second) in combinations(enumerate(directives), 2):
        if first.start == second.start:
            continue
        yield from (
            found
            for found in (
                _opposed(first, second, likeness[i][j]),
                _different_numbers(first, second, likeness[i][j]),
                *_dimensions(first, second, choices[i], choices[j], likeness[i][j]),
                _only_and_any(first, second),
            )
            if found is not None
        )


def _likeness(texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """How alike the clauses are for the multilingual encoder, without their negations."""
    from firecircle.voices.embedded.learned.unpacked import sentence_vectors

    if not texts:
        return []
    negative = lexicon().negative
    rows = sentence_vectors([negative.sub(" ", text).strip() or text for text in texts])
    alike: Sequence[Sequence[float]] = (rows @ rows.T).tolist()
    return alike


_ABLE = re.compile(r"\b(?:can|could|able to)\b")


def _opposed(first: Directive, second: Directive, alike: float) -> Found | None:
    """An order or permission that falls under a ban."""
    if first.negative == second.negative or alike < ALIKE or _excepts(first) or _excepts(second):
        return None
    ban, order = (first, second) if first.negative else (second, first)
    if _ABLE.search(order.text) or first.text.endswith(":") or second.text.endswith(":"):
        return None
    if not ban.core or ban.is_bound or order.is_bound:
        return None
    shared = ban.core & order.words()
    rest = ban.core - order.words()
    covered = len(shared) / len(ban.core)
    in_core = ban.core & order.core
    if not in_core or covered < SHARED or (rest and alike < STATED_TWICE):
        return None
    if len(shared) == 1 and not (alike >= VERY_ALIKE and (len(order.core) <= 2 or ban.universal)):
        return None
    if rest and order.core - ban.words():  # each has something of its own: different things
        return None
    if any(not words & order.about[place] for place, words in ban.about.items() if place in order.about):
        return None
    if ban.conditional and order.conditional and not ban.when <= order.when:
        return None
    ban_only, order_only = _limits(ban, order), _limits(order, ban)
    if ban_only and not order.universal:
        return None
    kind: ContradictionKind = "scope" if ban_only or (order_only and ban.universal) else "direct"
    return kind, first, second, f"{MEANINGS[kind]}: {_named(ban, shared)}"


def _excepts(directive: Directive) -> bool:
    """Whether a clause itself speaks of exceptions or of the remaining cases."""
    return bool(lexicon().other.search(directive.text))


_CASES = ("for", "to", "in", "during", "at")
"""The words that a limit to some cases begins with, as far as forms and manners are concerned."""


def _limits(one: Directive, other: Directive, places: Collection[str] | None = None) -> bool:
    """Whether the first holds only in cases that the other does not name."""
    others = other.words() | other.when
    limited = any(
        not words & others for place, words in one.about.items() if places is None or place in places
    )
    return (limited or (one.conditional and not one.when & others)) and not one.universal


def _named(directive: Directive, stems: frozenset[str]) -> str:
    """The words of a clause that have these stems, in its order."""
    return " ".join(dict.fromkeys(word for word in WORD.findall(directive.plain) if content_of(word) & stems))


def _different_numbers(first: Directive, second: Directive, alike: float) -> Found | None:
    """The same thing with two numbers that exclude each other."""
    if _excepts(first) or _excepts(second):
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
    return not _named_differently(first, second)


def _named_differently(first: Directive, second: Directive) -> bool:
    """Whether two statements have different subjects, as in `interns have 20 days`."""
    one, two = first.subject, second.subject
    return bool(one and two and one != two and one not in second.words() and two not in first.words())


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
        if _excepts(first) or _excepts(second) or _apart(first, second):
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
    return _limits(first, second, _CASES) and _limits(second, first, _CASES)


_ONLY = re.compile(r"\bonly\b(?! (?:if|when|after|with|once|for)\b)")
_ANY = re.compile(r"\b(?:any|whatever|all|every)\b")


def _only_and_any(first: Directive, second: Directive) -> Found | None:
    """What is allowed for some things only, and ordered for all."""
    for only, free in ((first, second), (second, first)):
        if not _ONLY.search(only.text) or free.negative or "only" in free.text or _excepts(free):
            continue
        shared = only.core & free.core
        if _ANY.search(free.text) and len(shared) >= 2:
            return "direct", first, second, f"only some, and all: {_named(only, shared)}"
    return None
