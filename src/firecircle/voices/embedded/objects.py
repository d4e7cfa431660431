"""What an order reaches for: the words after a verb, up to the end of its clause."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.voices.embedded.text import Sentence
from firecircle.voices.embedded.words import kind as k

REACH = 12
"""How many tokens after a verb its object may stand."""
NEAR = 4
"""Within how many tokens after the verb its object says whose it is."""
_STOPS = frozenset(".!?;:")
_MINE = frozenset(("my", "mine", "our", "mein", "meine", "meinen", "mi", "mis", "mon", "mes", "i"))
_INDEFINITE = frozenset(("a", "an", "some", "ein", "eine", "einen", "una", "une"))


@dataclass(frozen=True, slots=True)
class Intent:
    """One thing a sentence wants, between which tokens that shows, and how telling it is."""

    name: str
    strength: float
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Reach:
    """The object of a verb: the classes within its reach, and whose it is."""

    first: int
    last: int
    mask: int
    mine: bool
    indefinite: bool
    guarded: int
    """How many different guarded words stand within reach."""

    def has(self, *names: str) -> bool:
        """Whether some word within reach is of one of these classes."""
        return bool(self.mask & k(*names))


def reach(sentence: Sentence, index: int, limit: int = REACH) -> Reach:
    """What stands after the token at `index`, up to the end of its clause."""
    mask, last, mine, indefinite = 0, index, False, False
    guarded: set[str] = set()
    held_back = k("GUARDED")
    for place in range(index + 1, min(len(sentence.words), index + 1 + limit)):
        word = sentence.words[place]
        if word[0] in _STOPS and _ends_clause(sentence, place):
            break
        mask |= sentence.bits[place]
        near = place <= index + NEAR
        mine = mine or (near and word in _MINE)
        indefinite = indefinite or (near and word in _INDEFINITE)
        last = place
        if sentence.bits[place] & held_back:
            guarded.add(word)
    return Reach(index, last, mask, mine, indefinite, len(guarded))


def _ends_clause(sentence: Sentence, place: int) -> bool:
    """Whether a mark is followed by a gap; one inside an address or a number is not."""
    return place + 1 >= len(sentence.words) or sentence.starts[place + 1] > sentence.ends[place]
