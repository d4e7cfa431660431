"""Which patterns a text is about: the words an entry was seen with, weighed by how rare they are (BM25).

A prompt and a description of a manipulation rarely share words; a prompt and the quotes of earlier prompts
do. So an entry is known by both, and a question may be either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import log

from firecircle.store.bank_likeness import terms_of

SATURATION, LENGTH = 1.2, 0.75
"""The usual constants: how soon repetition stops counting, and how much a long entry is discounted."""
LONGEST_QUESTION = 50_000
"""Characters of a prompt that are looked at: half from its beginning and half from its end."""
LONGEST_SIGHTING = 4_000
"""Characters of a sighting's description and quotes that are looked at."""


def relevance(question: str, entries: Iterable[tuple[str, str]]) -> Mapping[str, float]:
    """For each entry that shares a word with the question, how relevant it is."""
    asked = terms_of(_shortened(question))
    bags: dict[str, Counter[str]] = {}
    for entry_id, words in entries:
        bags.setdefault(entry_id, Counter()).update(_terms_of_sighting(words[:LONGEST_SIGHTING]))
    if not bags:
        return {}
    usual = sum(bag.total() for bag in bags.values()) / len(bags) or 1.0
    holders = Counter(term for bag in bags.values() for term in bag)
    scores = {}
    for entry_id, bag in bags.items():
        room = SATURATION * (1 - LENGTH + LENGTH * bag.total() / usual)
        score = sum(
            weight
            * log(1 + (len(bags) - holders[term] + 0.5) / (holders[term] + 0.5))
            * bag[term]
            * (SATURATION + 1)
            / (bag[term] + room)
            for term, weight in asked.items()
            if term in bag
        )
        if score > 0:
            scores[entry_id] = score
    return scores


@lru_cache(maxsize=1024)
def _terms_of_sighting(words: str) -> tuple[str, ...]:
    return tuple(terms_of(words))


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_QUESTION:
        return text
    half = LONGEST_QUESTION // 2
    return f"{text[:half]} {text[-half:]}"
