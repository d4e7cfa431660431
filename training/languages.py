"""Learn which letters follow each other in English: `python -m training.languages` writes letters.txt.

From the prompts written for this project: English ones, and those in Latin letters of 14 languages. The
weight of three letters is the logarithm of how much more often they stand together in words of the others.
English words that their letters would take for another language are listed. The same data, the same bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from firecircle.lab.datasets import Record
from firecircle.languages.latin import LETTERS_FILE, PROSE, WEIGHTS, common_words, three_letters
from training import ROOT
from training.labelled import authored, multilingual, written_pairs

OFTEN = 3
"""How often an English word must occur to be known."""
QUOTED = 2
"""A word that is not this many times as common in the English prompts is only quoted there."""
STEP = 0.25
"""Weights are rounded to this."""
DAMPED = 0.5
"""A word that occurs n times counts as n to this power, so that the commonest do not drown the others."""


def main() -> None:
    """Write the file."""
    english, others = _words(_english()), _words(multilingual())
    share = sum(english.values()) / sum(others.values())
    known = {
        word for word, times in english.items() if times >= OFTEN and times > share * QUOTED * others[word]
    }
    of_others = _counts({word: times for word, times in others.items() if word not in known})
    weights = _weights(_counts(english), of_others)
    wronged = sorted(word for word in known if _needs_listing(word, weights))
    by_weight: dict[float, list[str]] = {}
    for three, weight in sorted(weights.items()):
        by_weight.setdefault(weight, []).append(three)
    lines = [f"{weight:g} {' '.join(threes)}" for weight, threes in sorted(by_weight.items())]
    path = ROOT / "src" / "firecircle" / "languages" / LETTERS_FILE
    path.write_text("\n".join([*lines, " ".join(wronged)]) + "\n", encoding="utf-8")
    print(f"{len(weights)} weights and {len(wronged)} words in {path.stat().st_size:,} bytes")


def _english() -> Iterator[Record]:
    yield from authored()
    yield from written_pairs()


def _words(records: Iterable[Record]) -> Counter[str]:
    words = Counter[str]()
    for record in records:
        prompt = record.prompt
        for text in (prompt.system, prompt.application, prompt.user):
            words.update(
                word.lower().replace("’", "'") for word in PROSE.findall(text) if word[1:] == word[1:].lower()
            )
    return words


def _counts(words: Counter[str] | dict[str, int]) -> Counter[str]:
    counts = Counter[str]()
    for word, times in words.items():
        if len(word) > 1 and word.isascii():
            for three in three_letters(word):
                counts[three] += times**DAMPED
    return counts


def _weights(english: Counter[str], others: Counter[str]) -> dict[str, float]:
    all_english, all_others = sum(english.values()), sum(others.values())
    weights = {}
    for three in english.keys() | others.keys():
        odds = (others[three] + 1) / all_others / ((english[three] + 1) / all_english)
        weight = round(math.log(odds) / STEP) * STEP
        if english[three] + others[three] >= 2 or abs(weight - WEIGHTS.unheard) > STEP:
            weights[three] = weight
    return weights


def _needs_listing(word: str, weights: dict[str, float]) -> bool:
    if not word.isascii() or word in common_words().english or len(word) == 1:
        return not word.isascii()
    heard = sum(weights.get(three, WEIGHTS.unheard) for three in three_letters(word))
    return heard > 0 or word in common_words().languages


if __name__ == "__main__":
    main()
