"""A layer cut into sentences of tokens that know where they stand: every quote is the prompt's own words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import NamedTuple

from firecircle.voices.embedded.language.words import classes_of, expressions, stem

Marks = Mapping[str, int]
"""Classes that words have in this prompt only, by stem."""

LONGEST_SENTENCE = 60
"""Tokens after which a sentence is cut even without an end: nothing here may grow faster than the text."""
LONGEST_WORD, LONGEST_SIGN = 40, 3
LONGEST_QUOTE = 200

_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|\n|([^\w\s]|_)\1*")
_ENDS = frozenset(".!?\n。！？…;")
_QUOTE_MARKS = frozenset("\"“”«»„`'‘")


class Sentence(NamedTuple):
    """A stretch of one layer: its tokens in lower case, where each stands, and the classes of each."""

    layer: str
    text: str
    """The whole layer."""
    words: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    bits: tuple[int, ...]
    mask: int
    """All classes that occur."""
    question: bool

    @property
    def start(self) -> int:
        """Where it begins in its layer."""
        return self.starts[0]

    @property
    def end(self) -> int:
        """Where it ends in its layer."""
        return self.ends[-1]

    def quote(self, first: int = 0, last: int = -1) -> tuple[int, int]:
        """The place of the tokens from `first` to `last`, no longer than a quote may be."""
        start, end = self.starts[first], self.ends[last]
        return (start, end) if end - start <= LONGEST_QUOTE else (start, self._cut(start + LONGEST_QUOTE))

    def _cut(self, limit: int) -> int:
        return max((end for end in self.ends if end <= limit), default=limit)

    def inside_quotes(self, index: int) -> bool:
        """Whether a token stands between quotation marks within this sentence."""
        before = sum(word[0] in _QUOTE_MARKS for word in self.words[:index])
        return before % 2 == 1 and any(word[0] in _QUOTE_MARKS for word in self.words[index:])


def sentences(text: str, layer: str, marks: Marks | None = None) -> list[Sentence]:
    """The sentences of a layer in order, its words marked. Linear in the length of the text."""
    cut: list[Sentence] = []
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []

    def close(question: bool) -> None:
        if any(word[0].isalnum() for word in words):
            cut.append(_sentence(text, layer, words, starts, ends, question, marks))
        words.clear()
        starts.clear()
        ends.clear()

    for match in _TOKEN.finditer(text):
        start, end = match.span()
        first = text[start]
        if first == "\n":
            close(False)
            continue
        starts.append(start)
        ends.append(end)
        longest = LONGEST_WORD if first.isalnum() else LONGEST_SIGN
        words.append(text[start : min(end, start + longest)].lower().replace("’", "'"))
        if first in _ENDS and (end >= len(text) or text[end] in " \n\t\r\"'”)]}*"):
            close(first in "?？")
        elif len(words) >= LONGEST_SENTENCE:
            close(False)
    close(False)
    return cut


def _sentence(
    text: str,
    layer: str,
    words: list[str],
    starts: list[int],
    ends: list[int],
    question: bool,
    marks: Marks | None,
) -> Sentence:
    bits = list(map(classes_of, words))
    if marks:
        bits = [bit | marks.get(stem(word), 0) for word, bit in zip(words, bits, strict=True)]
    known = expressions()
    for index, word in enumerate(words):
        if word not in known:
            continue
        for rest, extra in known[word]:
            if tuple(words[index + 1 : index + 1 + len(rest)]) == rest:
                for place in range(index, index + 1 + len(rest)):
                    bits[place] |= extra
                break
    mask = reduce(or_, bits)
    return Sentence(layer, text, tuple(words), tuple(starts), tuple(ends), tuple(bits), mask, question)
