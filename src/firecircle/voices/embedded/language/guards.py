"""What the operator holds back: the words of the system text that name guarded information, or steps that
are tied to a condition.

They are marked in the other layers, so that a lens can tell a request for the leaflet from one for the rota.
"""

from __future__ import annotations

from collections import Counter

from firecircle.voices.embedded.language.text import Marks, Sentence, sentences
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.language.words import stem, word_list

_NOT_CONTENT = k(
    "YOU", "ME", "NOT", "MODAL", "FILLER", "SHOW", "LEAK", "SAY", "CONCEAL", "MACHINE", "ALL", "ASK", "EXACT",
    "WANT",
)  # fmt: skip
_CONTENT_ANYWAY = k("PRIVATE", "SECRET", "CONFIG", "CHECK", "INTERNAL")
_HOLDING_BACK = frozenset(
    ("keep", "kept", "yourself", "visible", "known", "see", "told", "shown", "shared", "leave", "stay")
)
_CONDITIONS = frozenset(
    ("need", "needs", "only", "must", "above", "until", "before", "after", "require", "requires", "unless")
)


def guard_marks(system: str) -> Marks:
    """The stems the operator's text guards: information held back, or steps tied to a condition."""
    of_operator = sentences(system[:20_000], "system")
    free = Counter(
        word for sentence in of_operator if not _restricts(sentence) for word in _content(sentence)
    )
    marks: dict[str, int] = {}
    for sentence in of_operator:
        bits = _restricts(sentence)
        if bits:
            for word in _content(sentence):
                if word not in free:
                    marks[word] = marks.get(word, 0) | bits
    return marks


def _restricts(sentence: Sentence) -> int:
    """Whether a sentence of the operator holds something back, and in which way."""
    words = set(sentence.words)
    mask = sentence.mask
    limiting = bool(mask & k("NOT")) or "only" in words
    if mask & k("INTERNAL") or (limiting and (mask & k("SHOW", "LEAK", "CONCEAL") or words & _HOLDING_BACK)):
        return k("GUARDED")
    if "yourself" in words or (words & {"is", "are"} and limiting and "for" in words):
        return k("GUARDED")
    if limiting or mask & k("CHECK") or words & _CONDITIONS:
        return k("GATED")
    return 0


def _content(sentence: Sentence) -> frozenset[str]:
    function_words = word_list("function")
    return frozenset(
        stem(word)
        for word, bits in zip(sentence.words, sentence.bits, strict=True)
        if len(word) > 2
        and word[0].isalpha()
        and word not in function_words
        and (not bits & _NOT_CONTENT or bits & _CONTENT_ANYWAY)
        and word not in _HOLDING_BACK
        and word not in _CONDITIONS
    )
