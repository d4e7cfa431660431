"""Contradictions in a system prompt: passages that cannot both be followed, or whose precedence is unclear.

`find_contradictions` asks no model. It reads each sentence as a directive (must or must not, what, when), and
reports the pairs that a rule explains or that clash by fitted signs. It reads English and prefers silence to
a wrong finding. `firecircle.lab.scouring` lets language models look for the same.
"""

from __future__ import annotations

from firecircle.contradictions.choices import found_choices
from firecircle.contradictions.clashes import found_clashes, likeness_of
from firecircle.contradictions.directives import Directive, Found, directives_in
from firecircle.contradictions.kinds import (
    KINDS,
    MEANINGS,
    SUGGESTIONS,
    Contradiction,
    ContradictionKind,
    Passage,
)
from firecircle.contradictions.single import (
    missing_references,
    opposite_rankings,
    stated_winner,
    swallowed_rules,
)
from firecircle.prompt import MultiNeutrosophicPrompt

__all__ = [
    "KINDS",
    "MEANINGS",
    "SUGGESTIONS",
    "Contradiction",
    "ContradictionKind",
    "Passage",
    "find_contradictions",
]

LONGEST = 60_000
MOST_DIRECTIVES = 600
LONGEST_QUOTE = 240


def find_contradictions(prompt: str | MultiNeutrosophicPrompt) -> tuple[Contradiction, ...]:
    """The contradictions in a system prompt, in its order, found without any model.

    >>> [found] = find_contradictions("Keep replies under 80 words. Write at least 200 words per reply.")
    >>> found.kind
    'numbers'
    """
    text = (prompt if isinstance(prompt, str) else prompt.system)[:LONGEST]
    directives = list(directives_in(text))[:MOST_DIRECTIVES]
    winner = stated_winner(directives)
    found = [
        *missing_references(text, directives),
        *swallowed_rules(directives),
        *opposite_rankings(directives),
    ]
    if directives:
        likeness = likeness_of(directives)
        found += found_choices(directives, likeness)
        found += found_clashes(directives, likeness)
    seen: set[tuple[int, int]] = set()
    kept = []
    for kind, first, second, why in sorted(found, key=_place):
        place = first.start, second.start if second else -1
        if place in seen:
            continue
        seen.add(place)
        kept.append(
            Contradiction(
                kind=kind,
                first=_passage(text, first),
                second=_passage(text, second) if second else None,
                why=why,
                wins=winner,
                suggestion=SUGGESTIONS[kind] if winner is None else "accept, if that order is meant",
            )
        )
    return tuple(kept)


def _place(found: Found) -> tuple[int, int]:
    _, first, second, _ = found
    return first.start, second.start if second else -1


def _passage(text: str, directive: Directive) -> Passage:
    end = min(directive.end, directive.start + LONGEST_QUOTE)
    return Passage(quote=text[directive.start : end], start=directive.start, end=end)
