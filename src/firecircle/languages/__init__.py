"""Detect languages that the embedded readers cannot read.

They read English; the neural one roughly reads fourteen more languages. Other scripts are recognised by their
letters, other languages in Latin script by their words (`latin`). A text without such signs (code, tables, a
few words) counts as read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from firecircle.languages.latin import LEAST_WORDS, UNNAMED, common_words, latin_language
from firecircle.names import NEURAL_MODEL, is_embedded
from firecircle.prompt import MultiNeutrosophicPrompt

LEAST_LETTERS, LEAST_OF_ALL, LEAST_OF_A_SCRIPT = 20, 10, 6
"""Fewer letters in a language, or of another script, are a name or a word, not a text. The second value
applies if most of a text is in that language.
"""
SHORT = 200
"""Texts up to this many characters are also checked as a whole, because their parts may be too short."""
ACCENTED = 0.04
"""The share of non-ASCII letters above which a stretch without a common English word is not English."""
READ_AT_MOST = 200_000
"""Characters of a layer that are checked for words. Letters of other scripts are counted in all of it."""

READ_ROUGHLY = frozenset(
    (
        *("Arabic", "Chinese", "Cyrillic", "Dutch", "French", "German", "Italian", "Japanese", "Korean"),
        *("Polish", "Portuguese", "Spanish", "Thai", "Turkish"),
    )
)
"""The languages besides English that the multilingual model of `embedded:neural` was trained on."""
NOT_READ = "I do not read "
"""How an embedded voice begins to say which languages it does not read."""

_SCRIPTS = {
    "Greek": r"\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": r"\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    "Armenian": r"\u0530-\u058f",
    "Hebrew": r"\u0590-\u05ff\ufb1d-\ufb4f",
    "Arabic": r"\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "Thaana": r"\u0780-\u07bf",
    "Devanagari": r"\u0900-\u097f",
    "Bengali": r"\u0980-\u09ff",
    "Gurmukhi": r"\u0a00-\u0a7f",
    "Gujarati": r"\u0a80-\u0aff",
    "Oriya": r"\u0b00-\u0b7f",
    "Tamil": r"\u0b80-\u0bff",
    "Telugu": r"\u0c00-\u0c7f",
    "Kannada": r"\u0c80-\u0cff",
    "Malayalam": r"\u0d00-\u0d7f",
    "Sinhala": r"\u0d80-\u0dff",
    "Thai": r"\u0e00-\u0e7f",
    "Lao": r"\u0e80-\u0eff",
    "Tibetan": r"\u0f00-\u0fff",
    "Burmese": r"\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f",
    "Georgian": r"\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2f",
    "Ethiopic": r"\u1200-\u139f\u2d80-\u2ddf\uab00-\uab2f",
    "Khmer": r"\u1780-\u17ff",
    "Mongolian": r"\u1800-\u18af",
    "Korean": r"\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff\uffa0-\uffdc",
    "Japanese": r"\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Chinese": r"\u3105-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af",
}
_WORDLESS = frozenset(("Chinese", "Japanese", "Korean"))
_LATIN = (
    r"\u0000-\u036f\u1d00-\u1dbf\u1e00-\u1eff\u2070-\u218f\u24b6-\u24e9\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f"
    r"\ufb00-\ufb06\uff21-\uff5a\U0001d400-\U0001d7ff\U0001f100-\U0001f1ff"
)
"""Latin letters, and letters that imitate them: a disguise."""
_NO_OTHER = "".join((_LATIN, *_SCRIPTS.values()))
_RUNS = {
    name: re.compile(f"[{letters}]{{{1 if name in _WORDLESS else 3},}}") for name, letters in _SCRIPTS.items()
} | {"another script": re.compile(rf"(?:(?![{_NO_OTHER}])[^\W\d_]){{3,}}")}
"""Runs of letters of a script; single letters among Latin ones are a disguise, which a lens removes."""

_LETTERS_AND_DIGITS = re.compile(r"(?=[a-z0-9]*[a-z])(?=[a-z0-9]*[0134578])[a-z0-9]{2,30},?", re.IGNORECASE)
_DIGITS_AS_LETTERS = str.maketrans("0134578", "oieastb")
_STRETCH = re.compile(r"[^\n.!?。！？;:|]+")


def unread_letters(text: str) -> Counter[str]:
    """The number of letters in unread languages, by language."""
    return Counter(dict(_unread_letters(text)))


@lru_cache(maxsize=32)
def _unread_letters(text: str) -> tuple[tuple[str, int], ...]:
    letters = Counter[str]()
    if not text.isascii():
        for script, pattern in _RUNS.items():
            letters[script] = sum(map(len, pattern.findall(text)))
        if letters["Japanese"]:  # kana among Chinese characters: all of it is Japanese
            letters["Japanese"] += letters.pop("Chinese", 0)
    stretches = _STRETCH.findall(text[:READ_AT_MOST])
    if len(stretches) > 1 and len(text) <= SHORT:
        stretches.append(" ".join(stretches))
    for stretch in stretches:
        language = latin_language(stretch) or _language_by_accents(stretch) or _language_in_digits(stretch)
        if language is not None:
            letters[language] += sum(map(str.isalpha, stretch))
    half = sum(map(str.isalpha, text)) / 2 if letters and len(text) <= SHORT else len(text)
    return tuple(
        (language, count) for language, count in letters.items() if count >= _least(language, count > half)
    )


def _least(language: str, most: bool) -> int:
    if language in _RUNS:
        return LEAST_OF_A_SCRIPT
    return LEAST_OF_ALL if most else LEAST_LETTERS


def _language_in_digits(stretch: str) -> str | None:
    """The language of a stretch with digits in place of letters in most words: k41s3 k4r0."""
    words = stretch.split()
    mixed = sum(bool(_LETTERS_AND_DIGITS.fullmatch(word)) for word in words)
    if mixed < LEAST_WORDS or 2 * mixed <= len(words):
        return None
    language = latin_language(stretch.translate(_DIGITS_AS_LETTERS))
    return None if language == UNNAMED else language  # part numbers are not a language


def _language_by_accents(stretch: str) -> str | None:
    """Whether non-ASCII letters and the lack of common English words show that it is not English."""
    words = stretch.split()
    if stretch.isascii() or common_words().english.intersection(map(str.lower, words)):
        return None
    if all(word[0].isupper() for word in words):  # names
        return None
    latin = [letter for letter in stretch if letter.isalpha() and letter < "\u0250"]
    foreign = sum(not letter.isascii() for letter in latin)
    return UNNAMED if len(latin) >= LEAST_LETTERS and foreign > max(1, ACCENTED * len(latin)) else None


def unread_languages(prompt: MultiNeutrosophicPrompt) -> Counter[str]:
    """The unread letters of the judged layers, by language."""
    return unread_letters(prompt.application) + unread_letters(prompt.user)


def unread_advisory(prompt: MultiNeutrosophicPrompt, heard: Mapping[str, str]) -> str | None:
    """A sentence on the languages that no heard voice reads; None if some voice does, at least roughly.

    `heard` is the reasoning of each voice: with the neural reader in it, more languages are read, and its
    reasoning names those it cannot read.
    """
    languages, reader = _unread_by(prompt, heard)
    if not languages or reader:
        return None
    named = " and ".join(languages)
    return f"{named}: no voice here reads it, so without an alarm this prompt is unread, not clean"


def roughly_read_advisory(prompt: MultiNeutrosophicPrompt, heard: Mapping[str, str]) -> str | None:
    """A sentence on the languages that only one voice reads, and only roughly."""
    languages, reader = _unread_by(prompt, heard)
    return f"{' and '.join(languages)}: only {reader} reads it, and roughly" if languages and reader else None


def reader_of(prompt: MultiNeutrosophicPrompt) -> str | None:
    """The embedded voice that reads every language of the prompt, at least roughly; None if there is none."""
    return NEURAL_MODEL if READ_ROUGHLY.issuperset(unread_languages(prompt)) else None


def _unread_by(prompt: MultiNeutrosophicPrompt, heard: Mapping[str, str]) -> tuple[list[str], str | None]:
    """The languages that the embedded voices do not read well, and the one of them that reads all roughly.

    Empty if another kind of voice was heard.
    """
    if not heard or not all(map(is_embedded, heard)):
        return [], None
    languages = [language for language, _ in unread_languages(prompt).most_common()]
    reads = NEURAL_MODEL in heard and NOT_READ not in heard[NEURAL_MODEL]
    return languages, NEURAL_MODEL if reads and READ_ROUGHLY.issuperset(languages) else None
