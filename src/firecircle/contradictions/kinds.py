"""What a contradiction is: its kinds, and the two passages."""

from __future__ import annotations

from typing import Literal, get_args

from firecircle.shapes import Shape, Text

ContradictionKind = Literal["direct", "exception", "scope", "format", "priority", "missing", "numbers"]
KINDS: tuple[ContradictionKind, ...] = get_args(ContradictionKind)
MEANINGS: dict[ContradictionKind, str] = {
    "direct": "one passage orders what the other forbids",
    "exception": "the exception leaves nothing of its rule",
    "scope": "a rule without limits meets one for some cases that says the opposite",
    "format": "two forms are asked for that exclude each other",
    "priority": "two passages rank the same things in opposite order",
    "missing": "a tool or rule is referred to that this text does not have",
    "numbers": "the same thing has two different numbers",
}
SUGGESTIONS: dict[ContradictionKind, str] = {
    "direct": "rewrite: drop one, or say when each of them holds",
    "exception": "rewrite: name the cases that are excepted",
    "scope": "clarify: add the exception to the general rule",
    "format": "rewrite: choose one, or say for what each is meant",
    "priority": "rewrite: rank once, in one place",
    "missing": "clarify: define what is referred to, or remove the reference",
    "numbers": "clarify: choose one number, or say what each applies to",
}


class Passage(Shape):
    """Words of the text, and where they are."""

    quote: Text
    start: int
    end: int


class Contradiction(Shape):
    """Two passages of one text, in its order; the second is None where one passage shows it all."""

    kind: ContradictionKind
    first: Passage
    second: Passage | None
    why: Text
    """What exactly disagrees, in a few words."""
    wins: Text | None = None
    """What the text itself says about which of the two counts."""
    suggestion: Text
    found_by: tuple[Text, ...] = ()
    """The voices that reported it; empty: the rules of this package."""
