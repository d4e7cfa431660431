"""How relevant an entry is to a question, from 0 to 1: by words, concepts and, where it can be told, meaning.

By words it is the share of what is asked that the entry says too (BM25, held against the most that it could
come to); what few entries say counts most. `python -m bench bank_search` measures it on labelled questions.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from heapq import nlargest
from importlib import resources
from math import log
from statistics import fmean

from rapidfuzz.distance import OSA

from firecircle.store.bank.likeness import TELLING, known_words, terms_of, words_of

Meaning = Callable[[str, Sequence[str]], Sequence[float]]
"""From a question and texts to how near each text is to it in meaning, at most 1."""

SATURATION, LENGTH = 1.2, 0.75
"""The usual constants: how soon repetition stops counting, and how much a long entry is discounted."""
LONGEST_QUESTION = 50_000
"""Characters of a prompt that are looked at: half from its beginning and half from its end."""
LONGEST_SIGHTING = 4_000
"""Characters of a sighting's description and quotes that are looked at."""
COMPARED = 8
"""Descriptions and quotes of an entry that are compared with the question by meaning, the latest first."""
NEAREST = 2
"""An entry is as near as the mean of this many of them."""
UNRELATED = 0.25
"""Nearness that any two texts of this subject have."""
LONGEST_TYPED = 400
"""Characters of a question that somebody types, and mistypes; longer ones are texts."""
SHORTEST_MISTYPED, LONG_WORD = 6, 9
"""Letters of a word that may have one letter wrong, and of one that may have two."""
SHORTEST_WORD = 5
"""Shorter ones are near too many others."""
LONG = 3_000
"""A question of so many characters is itself a long text, in which something may be buried."""


def relevance(
    question: str, entries: Iterable[tuple[str, str]], meaning: Meaning | None = None
) -> Mapping[str, float]:
    """For each entry that has anything to do with the question, how relevant it is.

    `entries` are ids with the words of a sighting (its description, then a quote a line), the latest first.
    """
    asked = asked_terms(_as_meant(question) if len(question) <= LONGEST_TYPED else _shortened(question))
    bags: dict[str, Counter[str]] = {}
    texts: dict[str, dict[str, None]] = {}
    for entry_id, words in entries:
        bags.setdefault(entry_id, Counter()).update(_terms_of_sighting(words[:LONGEST_SIGHTING]))
        lines = words[:LONGEST_SIGHTING].splitlines()
        texts.setdefault(entry_id, {}).update((line, None) for line in lines if line.strip())
    shares = _shares(asked, bags)
    if meaning is None or not bags:
        return {entry_id: share for entry_id, share in shares.items() if share > 0}
    near = _nearness(question, texts, meaning)
    return {
        entry_id: (share + near[entry_id]) / 2
        for entry_id, share in shares.items()
        if share > 0 or near[entry_id] > 0
    }


def _shares(asked: Mapping[str, float], bags: Mapping[str, Counter[str]]) -> dict[str, float]:
    usual = sum(bag.total() for bag in bags.values()) / (len(bags) or 1) or 1.0
    holders = Counter(term for bag in bags.values() for term in bag)
    rarity = {term: log(1 + (len(bags) - holders[term] + 0.5) / (holders[term] + 0.5)) for term in asked}
    most = sum(weight * rarity[term] for term, weight in asked.items())
    shares: dict[str, float] = {}
    for entry_id, bag in bags.items():
        room = SATURATION * (1 - LENGTH + LENGTH * bag.total() / usual)
        shared = sum(
            weight * rarity[term] * bag[term] / (bag[term] + room)
            for term, weight in asked.items()
            if term in bag
        )
        shares[entry_id] = shared / most if most else 0.0
    return shares


def _nearness(question: str, texts: Mapping[str, Iterable[str]], meaning: Meaning) -> dict[str, float]:
    compared = {entry_id: list(of)[:COMPARED] for entry_id, of in texts.items()}
    every = [text for of in compared.values() for text in of]
    nearness = dict(zip(every, meaning(question, every), strict=True))
    return {
        entry_id: max(0.0, fmean(nlargest(NEAREST, (nearness[text] for text in of)) or [0.0]) - UNRELATED)
        / (1 - UNRELATED)
        for entry_id, of in compared.items()
    }


def asked_terms(text: str) -> Mapping[str, float]:
    """What a question or quote is about: its words and concepts, and what its phrases and looks stand for."""
    spoken = {f"={name}": TELLING for name in _spoken_concepts(text)}
    return {**terms_of(text), **spoken}


def _as_meant(question: str) -> str:
    """A question followed by the known words that its unknown ones are likely to be, in its order."""
    meant = [_likely(word) or word for word in question.casefold().split()]
    corrected = " ".join(meant)
    return question if corrected == question.casefold() else f"{question} . {corrected}"


@lru_cache(maxsize=1024)
def _likely(word: str) -> str | None:
    """The known word that a mistyped one was meant to be; None for a known word, or where none is near."""
    if len(word) < SHORTEST_MISTYPED or not word.isalpha() or _is_known(word):
        return None
    near = [(_letters_apart(word, known), known) for known in _vocabulary() if known[0] == word[0]]
    apart, likely = min(near, default=(1, ""))
    allowed = 2 if min(len(word), len(likely)) >= LONG_WORD else 1
    return likely if apart <= allowed and len(likely) >= SHORTEST_MISTYPED else None


def _letters_apart(word: str, known: str) -> int:
    """Letters to change, also where only the beginning of the word is known."""
    return min(OSA.distance(word, known), OSA.distance(word[: len(known)], known))


def _is_known(word: str) -> bool:
    """Whether a word is, or begins, or is the beginning of, one that is known."""
    return any(known.startswith(word) or word.startswith(known) for known in _vocabulary())


@cache
def _vocabulary() -> frozenset[str]:
    """Words that descriptions and questions are made of."""
    said = (word for _, phrases in _phrases() for phrase in phrases for word in words_of(phrase))
    return frozenset(
        word for word in (*known_words(), *said) if word.isalpha() and len(word) >= SHORTEST_WORD
    )


def _spoken_concepts(text: str) -> Iterable[str]:
    folded = " ".join(text.casefold().replace("’", "'").split())
    by_beginning = _phrases_by_beginning()
    for begun in _BEGINNING.finditer(folded):
        place = begun.start()
        for phrase, concepts in by_beginning.get(folded[place : place + KEY], ()):
            if folded.startswith(phrase, place):
                yield from concepts
    for concept, sign in _SIGNS.items():
        if sign.search(text):
            yield concept
    words = folded.split()
    if len(words) >= 6 and len(set(words)) * 2 < len(words):
        yield "repetition"
    if len(text) >= LONG:
        yield "filler"


_SIGNS = {
    "roles": re.compile(
        r"<\|?/?\w{0,9}(?:im_start|im_end|system|assistant|user|inst)\w{0,9}\|?>|\[/?(?:INST|SYS\w*)\]"
        r"|^\W*(?:system|assistant)\s*:",
        re.IGNORECASE | re.MULTILINE,
    ),
    "encoding": re.compile(
        r"\b(?=[A-Za-z]*[A-Z])(?=\w*\d)[A-Za-z0-9+/]{16,}={0,2}|(?:\\x[0-9a-f]{2}){4}", re.ASCII
    ),
    "invisible": re.compile("[\u200b-\u200d\u2060\ufeff\U000e0020-\U000e007f]"),
    "link": re.compile(r"https?://|!\["),
    "tool": re.compile(r"^\s*\{.*\"\w+\"\s*:", re.DOTALL),
}
"""What can be seen in a text rather than read, and the concept it stands for."""


_BEGINNING = re.compile(r"(?<![^\W_])(?=\S)")
"""Where a phrase may begin: not within a word."""
KEY = 2
"""Letters by which phrases are looked up; none is shorter."""


@cache
def _phrases_by_beginning() -> Mapping[str, Sequence[tuple[str, Sequence[str]]]]:
    found: dict[str, list[tuple[str, Sequence[str]]]] = {}
    for concepts, phrases in _phrases():
        for phrase in phrases:
            found.setdefault(phrase[:KEY], []).append((phrase, concepts))
    return found


@cache
def _phrases() -> Sequence[tuple[Sequence[str], Sequence[str]]]:
    """Groups of phrases with the concepts they stand for."""
    place = resources.files("firecircle.store.bank").joinpath("spoken.toml")
    groups = tomllib.loads(place.read_text("utf-8"))["phrases"]
    return [(group["concepts"], group["said"]) for group in groups]


@lru_cache(maxsize=1024)
def _terms_of_sighting(words: str) -> tuple[str, ...]:
    return tuple(asked_terms(words))


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_QUESTION:
        return text
    half = LONGEST_QUESTION // 2
    return f"{text[:half]} {text[-half:]}"
