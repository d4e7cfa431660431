"""Detect the language of a stretch in Latin script that is not English.

Two signs, each of which is enough: words common in another language but not in English, and words with letter
sequences unusual in English. The second also detects languages without a word list.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

LEAST_WORDS, LEAST_COMMON = 3, 2
"""Words of a stretch, and common words of its language among them, needed to name it."""
TELLING_LETTERS = 4
"""From this length on, one common word is enough if no common English word is next to it."""
UNNAMED = "another language than English"


class WordWeights(NamedTuple):
    """How much a word indicates a language other than English (below 0: English). Set by hand."""

    english: float = -2.0  # one of the commonest English words
    shared: float = 0.0  # common in English and in another language
    other: float = 2.0  # common in another language
    other_short: float = 1.0  # the same, of two letters, or an English word too
    known: float = -0.3  # an English word
    letters: float = 0.5  # the weight of its letter score
    letters_most: float = 1.5
    letters_least: float = -1.0
    unheard: float = 0.7  # per letter triple that the training texts never had
    name: float = 0.4  # factor for a capitalised word, probably a name
    enough: float = 2.5  # the sum that a stretch must reach
    vowels: float = 0.26  # the share of vowels below which a stretch is a code, not a language


WEIGHTS = WordWeights()
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_OPENING, _CLOSING = r"[\"'“”‘’«»„(\[*_¿¡…-]*", r"[\"'“”‘’«»)\],.!?:;*_…-]*"
PROSE = re.compile(rf"(?<!\S){_OPENING}([^\W\d_]+(?:['’-][^\W\d_]+)*){_CLOSING}(?!\S)")
"""A word by itself: one attached to signs or digits is a name, an address or a program."""
_BEYOND_LATIN = re.compile("[^\x00-\u024f\u0259\u1e00-\u1eff’]")
_VOWELS = re.compile("[aeiouà-æè-ïò-öø-üā-ąē-ěĩ-ıō-œũ-ųơưəạ-ựAEIOU]")


class CommonWords(NamedTuple):
    """The commonest words of each language."""

    english: frozenset[str]
    also_english: frozenset[str]
    """Words of other languages that also occur in English texts."""
    languages: dict[str, tuple[str, ...]]
    """The languages other than English in which a word of two letters or more is common."""


def latin_language(stretch: str) -> str | None:
    """The language of a stretch in Latin script if it is not English."""
    words = _WORD.findall(stretch)
    if len(words) < LEAST_WORDS:
        return None
    if not stretch.isupper():  # otherwise capitals are names: UN, MIT
        words = [word for word in words if word[1:].islower() or len(word) == 1]
    common = common_words()
    lowered = [word.lower() for word in words]
    english = [word for word in lowered if word in common.english]
    counts, shared = _votes(dict.fromkeys(lowered))  # in order, because the first language wins a tie
    if counts:
        language = max(counts, key=lambda language: (counts[language], shared[language]))
        if counts[language] >= LEAST_COMMON and counts[language] > len(english):
            return language
    if WEIGHTS.other * len(words) + (WEIGHTS.english - WEIGHTS.other) * len(english) <= 0:
        return None
    prose = [word for word in PROSE.findall(stretch) if word[1:] == word[1:].lower()]
    if len(prose) < LEAST_WORDS:
        return None
    if _is_mixed(prose) or _reads_as_another(stretch, prose):
        return language if counts else UNNAMED
    return None


def _votes(words: Collection[str]) -> tuple[Counter[str], Counter[str]]:
    """The number of common words per language among these: those not English, and those also English."""
    common = common_words()
    own, shared = Counter[str](), Counter[str]()
    for word in words:
        votes = shared if word in common.english or _is_also_english(word) else own
        votes.update(common.languages.get(word, ()))
    return own, shared


def _is_also_english(word: str) -> bool:
    return word in common_words().also_english or word in _letters().english_words


def _is_mixed(words: Sequence[str]) -> bool:
    """Whether words of another language connect English ones: cloud storage options batao.

    No word is common only in English; one long enough, or two, are common in the other language.
    """
    common = common_words()
    lowered = {word.lower() for word in words}
    if any(word in common.english and word not in common.languages for word in lowered):
        return False
    own, shared = _votes(lowered)
    if any(own[language] + shared[language] >= LEAST_COMMON for language in own):
        return True
    return any(len(word) >= TELLING_LETTERS and _votes([word])[0] for word in words)


def _reads_as_another(stretch: str, words: Sequence[str]) -> bool:
    """Whether the words together look unlike English, and like some language."""
    if all(word[0].isupper() for word in words):
        return False
    weight = 0.0
    for place, word in enumerate(words):
        own = _weight(word.lower().replace("’", "'"))
        weight += own * WEIGHTS.name if place and own > 0 and word[0].isupper() else own
    if weight <= WEIGHTS.enough:
        return False
    return len(_VOWELS.findall(stretch)) >= WEIGHTS.vowels * sum(map(str.isalpha, stretch))


@lru_cache(maxsize=50_000)
def _weight(word: str) -> float:
    common, letters = common_words(), _letters()
    if word in common.english:
        return WEIGHTS.shared if word in common.languages else WEIGHTS.english
    if word in common.languages:
        short = (len(word) == 2 and word.isascii()) or _is_also_english(word)
        return WEIGHTS.other_short if short else WEIGHTS.other
    if len(word) == 1 or word in letters.english_words:
        return WEIGHTS.known
    if _BEYOND_LATIN.search(word):  # signs that imitate Latin letters: a disguise, which a lens removes
        return 0.0
    if not word.isascii():
        return WEIGHTS.letters_most
    heard = sum(letters.weights.get(three, WEIGHTS.unheard) for three in three_letters(word))
    return max(WEIGHTS.letters_least, min(WEIGHTS.letters_most, WEIGHTS.letters * heard))


def three_letters(word: str) -> list[str]:
    """Every three consecutive letters of a word, with its two ends counted as letters."""
    ended = f"^{word}$"
    return [ended[at : at + 3] for at in range(len(ended) - 2)]


@cache
def common_words() -> CommonWords:
    """The lists of `common_words.toml`."""
    text = resources.files(__package__).joinpath("common_words.toml").read_text("utf-8")
    lists = {language: str(words).split() for language, words in tomllib.loads(text).items()}
    english, also_english = frozenset(lists.pop("English")), frozenset(lists.pop("also English"))
    languages: dict[str, tuple[str, ...]] = {}
    for language, words in lists.items():
        for word in words:
            if len(word) > 1:
                languages[word] = (*languages.get(word, ()), language)
    return CommonWords(english, also_english, languages)


class Letters(NamedTuple):
    """Learned weights: how much three letters indicate a language other than English, and exceptions."""

    weights: dict[str, float]
    english_words: frozenset[str]


LETTERS_FILE = "letters.txt"


@cache
def _letters() -> Letters:
    """One line per weight with its letters; the last line has the exceptions."""
    text = resources.files(__package__).joinpath(LETTERS_FILE).read_text("utf-8")
    *lines, words = text.splitlines()
    weights: dict[str, float] = {}
    for line in lines:
        weight, *threes = line.split()
        weights.update(dict.fromkeys(threes, float(weight)))
    return Letters(weights, frozenset(words.split()))
