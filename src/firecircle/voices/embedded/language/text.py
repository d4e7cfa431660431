"""A layer cut into sentences of tokens that know where they stand: every quote is the prompt's own words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache, reduce
from operator import or_
from typing import NamedTuple

from firecircle.voices.embedded.language.words import classes_of, expressions, stem, word_list

Marks = Mapping[str, int]
"""Classes that words have in this prompt only, by stem."""

LONGEST_SENTENCE = 60
"""Tokens after which a sentence is cut even without an end: nothing here may grow faster than the text."""
LONGEST_WORD, LONGEST_SIGN = 40, 3
LONGEST_QUOTE = 200

_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|\n|([^\w\s]|_)\1*")
_GLUE = re.compile(r"(?<=\d)[.,:/'’–-](?=\d)|(?<=[^\W_])[._@](?=[a-z0-9])|(?<=\b[A-Z])\.(?=[A-Z]\b)")
"""What holds tokens together that people read as one: 4,200 and 6–8, 10:30 and 2.5, U.S. and TODO.md."""
_ENDS = frozenset(".!?\n。！？…;")
_WIDEST_LINE = 240
"""Characters from which on a line was not wrapped by anybody."""
_SIGN = r"(?P<sign>[ \t]*(?:(?:>|//|\||#)[ \t]{0,4}){0,6})"
_LINE_BEFORE = re.compile(
    rf"{_SIGN}[^\s>|#][^\n]*?"
    r"(?:\b(?P<unfinished>a|an|and|any|as|at|but|by|for|from|in|my|of|on|or|our|the|their|this|to|with|your)"
    r"|[^\W_]['’\"”)\]*`]?,?)[ \t\r]*\Z",
    re.IGNORECASE,
)
"""A line that ends within a sentence, perhaps with a word that no sentence ends with."""
_LINE_GOES_ON = re.compile(
    rf"{_SIGN}(?![\w.-]{{1,30}}[ \t]{{0,2}}[:=])"
    r"(?:(?P<small>[\"'“‘(`*]{0,2}(?=[^\W\d_A-Z])|(?=I\b))|(?=\w))"
)
"""The beginning of a line that goes on with one: in small letters, and no name of a field."""
_QUOTE_MARKS = frozenset("\"“”«»„`'‘")
_GLUED_BEFORE = frozenset("=/.#$%\\")
_JOINED = re.compile(r"[\W_]+")
_BEFORE_BRACKETS = frozenset(("ai", "assistant", "instruction", "instructions", "rule", "rules", "prompt"))
"""Words that brackets may follow where people are careless, and that no function is called."""
_LONGEST_PASTED, _SHORTEST_PASTED = 4_000, 20
_PASTED = re.compile(
    r"\"{3}|<(?P<tag>[a-zA-Z][\w-]{0,30})>|\[\["
    r"|(?P<lines>(?:^[ \t]{0,8}>[^\n]*\n?)+)|(?P<rule>^-{3,}[ \t]{0,8}\n)"
    r"|(?P<quote>(?<!\w)[\"“][^\"”\n]{121,4000}[\"”])",
    re.MULTILINE,
)
_QUOTATION = re.compile(
    r"(?<![\w\"'`])(?:\"[^\"\n]{1,120}\"|'[^'\n]{1,120}'|`[^`\n]{1,120}`|“[^”\n]{1,120}”|„[^“”\n]{1,120}[“”]"
    r"|‘[^’\n]{1,120}’|«[^»\n]{1,120}»)(?![\w\"'`])"
)


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
        """The place of the tokens from `first` to `last`, no longer than a quote may be.

        It neither begins nor ends inside a number, an abbreviation or a name with a dot.
        """
        start, end = _whole(self.text, self.starts[first], self.ends[last])
        return (start, end) if end - start <= LONGEST_QUOTE else (start, self._cut(start + LONGEST_QUOTE))

    def _cut(self, limit: int) -> int:
        fitting = [end for end in self.ends if end <= limit]
        whole = [end for end in fitting if not _GLUE.match(self.text, end)]
        return max(whole or fitting, default=limit)

    def inside_quotes(self, index: int) -> bool:
        """Whether a token stands between quotation marks within this sentence."""
        if quotation_at(self.text, self.starts[index]):
            return True
        before = sum(word[0] in _QUOTE_MARKS for word in self.words[:index])
        return before % 2 == 1 and any(word[0] in _QUOTE_MARKS for word in self.words[index:])


def _whole(text: str, start: int, end: int) -> tuple[int, int]:
    """The place with its first and last token whole; as it was where that makes it too long for a quote."""
    first, last = start, end
    while first and last - first <= LONGEST_QUOTE and _GLUE.match(text, first - 1):
        first -= 1
        while first and text[first - 1].isalnum():
            first -= 1
    while last - first <= LONGEST_QUOTE and _GLUE.match(text, last):
        last += 1
        while last < len(text) and text[last].isalnum():
            last += 1
    return (first, last) if last - first <= LONGEST_QUOTE else (start, end)


def quote_end(text: str, start: int, end: int) -> int:
    """Where a quote of this place ends: with a whole word, and no longer than a quote may be."""
    end = min(end, start + LONGEST_QUOTE)
    cut = end
    while start < cut < len(text) and text[cut - 1].isalnum() and text[cut].isalnum():
        cut -= 1
    return cut if cut > start else end


@lru_cache(maxsize=16)
def quoted_places(text: str) -> tuple[tuple[int, int], ...]:
    """Where a text quotes a few words, between marks that open behind a gap and close before one.

    What is longer is no quotation but pasted material.
    """
    return tuple(match.span() for match in _QUOTATION.finditer(text))


def quotation_at(text: str, place: int) -> tuple[int, int] | None:
    """The short quotation that a place stands in."""
    places = quoted_places(text)
    before = bisect_right(places, (place, len(text)))
    return places[before - 1] if before and place < places[before - 1][1] else None


@lru_cache(maxsize=16)
def pasted_places(text: str) -> tuple[tuple[int, int], ...]:
    """Where a message holds somebody else's text: in a tag, behind signs of quotation, between rules."""
    places: list[tuple[int, int]] = []
    done = 0
    for opening in _PASTED.finditer(text):
        if opening.start() < done:
            continue
        end = opening.end()
        if not opening["lines"] and not opening["quote"]:
            end = _closing(text, opening)
        if end - opening.end() >= _SHORTEST_PASTED or opening["lines"] or opening["quote"]:
            places.append((opening.start(), end))
            done = end
    return tuple(places)


def _closing(text: str, opening: re.Match[str]) -> int:
    """Where pasted text ends that began with this sign; where it began, if it never does."""
    sign = f"</{opening['tag']}>" if opening["tag"] else "\n---" if opening["rule"] else opening[0]
    sign = "]]" if sign == "[[" else sign
    end = text.find(sign, opening.end(), opening.end() + _LONGEST_PASTED)
    if end < 0 and opening["rule"]:
        return min(len(text), opening.end() + _LONGEST_PASTED)
    return end + len(sign) if end >= 0 else opening.end()


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

    done = 0
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if start < done:
            continue
        first = text[start]
        if first == "\n":
            done = _next_line_goes_on(text, start) if words else 0
            if not done:
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


def _next_line_goes_on(text: str, newline: int) -> int:
    """Where a sentence goes on behind a line break that only keeps lines short; 0 where the break ends it.

    Mails and manuals are wrapped, and signs of quotation or of a comment may stand before each line.
    """
    start = text.rfind("\n", 0, newline) + 1
    if newline - start > _WIDEST_LINE:
        return 0
    line = _LINE_BEFORE.match(text, start, newline)
    follows = _LINE_GOES_ON.match(text, newline + 1)
    if line is None or follows is None or line["sign"].strip() != follows["sign"].strip():
        return 0
    return follows.end("sign") if follows["small"] is not None or line["unfinished"] else 0


def _is_a_name(text: str, word: str, start: int, end: int) -> bool:
    """Whether a word is glued to signs as names in programs, paths and options are: output_token, print(."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before == "_" or (after == "_" and text[end + 1 : end + 2].isalnum()):
        around = text[max(0, start - LONGEST_WORD) : end + LONGEST_WORD].lower()
        return not word_list("machines").intersection(_JOINED.split(around))
    if before and before in _GLUED_BEFORE:
        return text[start].islower() if before == "." else text[start - 2 : start] != "</"
    return after == "(" and word not in _BEFORE_BRACKETS


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
    if "u" in words:  # the name of a table: u.user_id
        bits = [
            0 if word == "u" and _GLUE.match(text, end) else bit
            for word, bit, end in zip(words, bits, ends, strict=True)
        ]
    if layer == "application":
        bits = [
            0 if bit and _is_a_name(text, words[at], starts[at], ends[at]) else bit
            for at, bit in enumerate(bits)
        ]
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
