"""What a word can be for: the classes of the vocabulary, one bit each, so that a sentence has one number.

The words themselves are data (`vocabulary.toml`, and `vocabulary_other.toml` for German, Spanish and French);
growing a lens mostly means adding a word there.
"""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from importlib import resources


@cache
def _vocabulary() -> dict[str, str]:
    english, others = (
        tomllib.loads(resources.files(__package__).joinpath(file).read_text("utf-8"))
        for file in ("vocabulary.toml", "vocabulary_other.toml")
    )
    return {name: f"{words} {others.get(name, '')}" for name, words in english.items()}


@cache
def word_list(name: str) -> frozenset[str]:
    """A closed list of words by its name in `wordlists.toml`."""
    text = resources.files(__package__).joinpath("wordlists.toml").read_text("utf-8")
    return frozenset(str(tomllib.loads(text)[name]).split())


@cache
def kind(*names: str) -> int:
    """The bits of these classes of words together."""
    order = list(_vocabulary())
    bits = 0
    for name in names:
        bits |= 1 << order.index(name)
    return bits


@cache
def _lexicon() -> dict[str, int]:
    lexicon: dict[str, int] = {}
    for name, words in _vocabulary().items():
        for word in words.split():
            lexicon[word] = lexicon.get(word, 0) | kind(name)
    return lexicon


@cache
def expressions() -> dict[str, tuple[tuple[tuple[str, ...], int], ...]]:
    """Expressions of several words by their first word, the longest first: the rest of it and its classes."""
    by_first: dict[str, list[tuple[tuple[str, ...], int]]] = {}
    for entry, bits in _lexicon().items():
        first, *rest = entry.split("_")
        if rest:
            by_first.setdefault(first, []).append((tuple(rest), bits))
    return {first: tuple(sorted(rest, key=lambda r: -len(r[0]))) for first, rest in by_first.items()}


_ENDINGS = (
    ("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e")
)  # fmt: skip


@lru_cache(maxsize=50_000)
def classes_of(word: str) -> int:
    """The classes of a lower-case word, found through its inflection where need be."""
    lexicon = _lexicon()
    bits = lexicon.get(word, 0)
    if "'" in word:
        base = word.removesuffix("n't")
        if base != word:
            return bits | kind("NOT") | lexicon.get(base, 0)
        return bits | lexicon.get(word.partition("'")[0], 0)
    if len(word) < 4 or not word.isascii():
        return bits
    for ending, instead in _ENDINGS:
        if word.endswith(ending):
            stem = word.removesuffix(ending) + instead
            bits |= lexicon.get(stem, 0)
            if len(stem) > 3 and stem[-1] == stem[-2]:
                bits |= lexicon.get(stem[:-1], 0)
    return bits


_SUFFIXES = (
    "ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "ly", "e",
    "y",
)  # fmt: skip


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A rough stem, for comparing the content of two texts."""
    word = word.partition("'")[0]
    for ending in _SUFFIXES:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
