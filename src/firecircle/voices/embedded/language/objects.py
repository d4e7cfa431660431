"""What an order reaches for: the words after a verb up to the end of its clause, and whose they are."""

from __future__ import annotations

from typing import NamedTuple

from firecircle.voices.embedded.language.text import Sentence
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.language.words import word_list

REACH = 12
"""How many tokens after a verb its object may stand."""
NEAR = 4
"""Within how many tokens after the verb its object says whose it is."""
TELLING = 0.4
"""An intent this strong colours what stands around it: below, a sentence may only sound like one."""
_STOPS = frozenset(".!?;:")
_QUOTES = frozenset("\"“”«»„`'‘")
_MINE = frozenset(("my", "mine", "our", "mein", "meine", "meinen", "mi", "mis", "mon", "mes", "i"))
_INDEFINITE = frozenset(("a", "an", "some", "ein", "eine", "einen", "una", "une"))
_ON, _IN = frozenset(("on",)), frozenset(("in",))
_SPEAKERS = frozenset(("my", "our"))
_BEHIND_A_VERB = 6
"""Within how many tokens after a verb a quotation is its object: translate this into Welsh: ‘…’."""
_COMPLEMENT = 7
"""Within how many tokens after a noun its complement says whose it is."""
_BENEFACTIVE = frozenset(("me", "us", "myself", "ourselves"))
_CLAUSE = frozenset(("and", "but", "so", "then", ",", "that", "which", "who"))
_TIES = k(
    "YOU", "PRIOR", "SETUP", "CHAT", "TEXT", "CONFIG", "RULES", "GIVEN", "SYSTEM", "OUTPUT", "TASK",
    "INTERNAL", "GUARDED", "GATED", "HUMAN_USER", "PRETEXT", "TEACHING", "HERE", "MACHINE",
)  # fmt: skip
"""What in a complement ties a noun to this exchange, or gives only the purpose of asking."""
_PURPOSE = k("PRETEXT", "TEACHING")
_OTHERS_TOO = frozenset(("machine", "system", "tool", "model", "agent", "parser"))
"""Names of the assistant that, narrowed by another noun, are names of something else."""


class Intent(NamedTuple):
    """One thing a sentence wants, between which tokens that shows, and how telling it is."""

    name: str
    strength: float
    first: int
    last: int


class Reach(NamedTuple):
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


def of_another_thing(
    sentence: Sentence, noun: int, prepositions: frozenset[str], whose: frozenset[str]
) -> bool:
    """Whether a complement says that the noun is not the assistant's: instructions for a shelf, on the box.

    `whose` are the words of which one must open the complement; if empty, any may.
    """
    words, bits = sentence.words, sentence.bits
    first = noun + 2
    if first >= len(words) or words[noun + 1] not in prepositions:
        return False
    if not words[first][0].isalpha() or words[first] in _BENEFACTIVE or (whose and words[first] not in whose):
        return False
    named = False
    for place in range(first, min(len(words), noun + 1 + _COMPLEMENT)):
        word = words[place]
        if word in _CLAUSE or (word[0] in _STOPS and _ends_clause(sentence, place)):
            break
        deed = place == first and word.endswith("ing")
        ties = bits[place] & (_PURPOSE if deed else _TIES)
        if ties and not (word in _OTHERS_TOO and _is_narrowed(words, place)):
            return False
        named = named or (word[0].isalnum() and word not in word_list("function"))
    return named


def _is_narrowed(words: tuple[str, ...], place: int) -> bool:
    """Whether the word before makes a noun one of another kind: a washing machine, a heating system."""
    before = words[place - 1]
    return before[0].isalpha() and before not in word_list("function")


def on_the_speakers_own(sentence: Sentence, first: int, last: int) -> bool:
    """Whether a power named between two places is over the speaker's own thing: admin mode on my router."""
    return any(
        of_another_thing(sentence, place, _ON, _SPEAKERS | _INDEFINITE)
        or of_another_thing(sentence, place, _IN, _SPEAKERS)
        for place in range(first, last + 1)
        if sentence.bits[place] & k("POWER")
    )


def worked_on(sentence: Sentence, index: int) -> bool:
    """Whether the words are the quoted object of a verb that turns text into text: encode "…" in base64."""
    if not sentence.mask & k("WRITE_TASK") or not sentence.inside_quotes(index):
        return False
    opened = max((at for at in range(index) if sentence.words[at][0] in _QUOTES), default=0)
    return any(bits & k("WRITE_TASK") for bits in sentence.bits[max(0, opened - _BEHIND_A_VERB) : opened])
