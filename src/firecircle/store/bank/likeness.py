"""How alike two descriptions are in meaning: the words they share, and the concepts behind the others.

Plain and always the same: no model, nothing to install, no answer that changes with what happens to be there.
`python -m bench bank` measures it on labelled pairs; `docs/decisions/015-bank.md` has the figures.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from math import prod, sqrt
from typing import NamedTuple

from rapidfuzz import fuzz

from firecircle.circle.pattern_types import known_types

SAME_MEANING = 0.44
"""Likeness from which on two descriptions of one pattern type are one entry."""
TELLING, COMMON, WORD, OF_THE_TYPE = 2.0, 0.5, 0.7, 0.25
"""What a concept that tells patterns apart weighs, one that most have, a word, and what the type is about."""
UNSAID = 2.0
"""What a description is taken to leave unsaid, as the square of a weight."""
SHARE_OF_MEANING = 0.75
"""The rest is how alike they are letter by letter, which catches inflections and names."""
REMEMBERED = 4096
"""Descriptions and words that need not be taken apart again in this process."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_PEER = re.compile(r"\bEvaluators? [A-J]\b|\b(?:read|points at the) (?:again|same words)\b")
_ENDINGS = ("ations", "ation", "ings", "ing", "ions", "ion", "edly", "ies", "ed", "es", "ly", "s")
SHORTEST_STEM = 4

Terms = Mapping[str, float]
"""What a text is about, each term with its weight."""


def likeness(first_text: str, second_text: str, pattern_type: str = "") -> float:
    """From 0 to 1, how alike two descriptions of a pattern of this type are in meaning."""
    first, second = _plain(first_text, pattern_type), _plain(second_text, pattern_type)
    if first == second:
        return 1.0
    meaning = _cosine(_within_type(first, pattern_type), _within_type(second, pattern_type))
    letters = fuzz.token_sort_ratio(first, second) / 100
    return SHARE_OF_MEANING * meaning + (1 - SHARE_OF_MEANING) * letters


def terms_of(text: str) -> Terms:
    """The concepts and the remaining words of a text; small words say nothing."""
    weights: dict[str, float] = {}
    for word in words_of(text):
        concepts = _concepts_of(word)
        weights.update(concepts)
        if not concepts:
            weights[stem_of(word)] = WORD
    return weights


@lru_cache(maxsize=REMEMBERED)
def _within_type(text: str, pattern_type: str) -> Terms:
    """The terms of a text, where what every pattern of the type has in common weighs little."""
    usual = _concepts().of_the_type.get(pattern_type, frozenset())
    return {
        term: min(weight, OF_THE_TYPE) if term in usual else weight for term, weight in terms_of(text).items()
    }


def words_of(text: str) -> Iterable[str]:
    """The words that carry meaning, folded."""
    small = _concepts().small
    return (word for word in _WORD.findall(text.casefold()) if word not in small)


def stem_of(word: str) -> str:
    """The word without a common ending."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def known_words() -> Iterable[str]:
    """Words, and beginnings of words, that say something here, and small ones."""
    known = _concepts()
    return (*known.small, *known.whole, *(beginning for beginning, _, _ in known.beginnings))


@lru_cache(maxsize=REMEMBERED)
def _plain(text: str, pattern_type: str) -> str:
    """The description without the name of its type and the labels of peers, which differ by circle."""
    plain = " ".join(_PEER.sub(" ", text).casefold().replace("_", " ").replace("-", " ").split())
    return plain.replace(pattern_type.replace("_", " "), " ") if pattern_type else plain


def _cosine(first: Terms, second: Terms) -> float:
    """The angle between two bags of terms; that two short texts share their only term says little."""
    both = [(weight, second[term]) for term, weight in first.items() if term in second]
    if not any(weight >= WORD for weight, _ in both):
        return 0.0  # they share nothing but what most descriptions say
    shared = sum(weight * same for weight, same in both)
    lengths = (UNSAID + weight * weight for weight in (_length(first), _length(second)))
    return shared / sqrt(prod(lengths))


def _length(terms: Terms) -> float:
    return sqrt(sum(weight * weight for weight in terms.values()))


class _Concepts(NamedTuple):
    small: frozenset[str]
    whole: Mapping[str, Terms]
    beginnings: Sequence[tuple[str, str, float]]
    of_the_type: Mapping[str, frozenset[str]]


@cache
def _concepts() -> _Concepts:
    """Words and beginnings of words with their concepts, and the concepts that a type is about."""
    place = resources.files("firecircle.store.bank").joinpath("concepts.toml")
    tables = tomllib.loads(place.read_text("utf-8"))
    whole: dict[str, dict[str, float]] = {}
    beginnings: list[tuple[str, str, float]] = []
    for table, weight in (("common", COMMON), ("telling", TELLING)):
        for concept, words in tables[table].items():
            for word in words:
                if word.endswith("*"):
                    beginnings.append((word[:-1], f"={concept}", weight))
                else:
                    whole.setdefault(word, {})[f"={concept}"] = weight
    of_the_type = {
        kind.value: frozenset(f"={name}" for name in known.concepts) for kind, known in known_types().items()
    }
    return _Concepts(frozenset(tables["small"].split()), whole, beginnings, of_the_type)


@lru_cache(maxsize=REMEMBERED)
def _concepts_of(word: str) -> Terms:
    known = _concepts()
    begun = {concept: weight for beginning, concept, weight in known.beginnings if word.startswith(beginning)}
    return {**known.whole.get(word, {}), **begun}
