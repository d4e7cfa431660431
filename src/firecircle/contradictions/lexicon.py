"""The words by which directives are read, from `lexicon.toml`. English."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from firecircle.contradictions.kinds import ContradictionKind


@dataclass(frozen=True, slots=True)
class Dimension:
    """Something that can have only one value, such as the format of a reply."""

    name: str
    kind: ContradictionKind
    same_topic: bool
    values: dict[str, re.Pattern[str]]
    negated: bool
    """Whether to forbid one value is to choose another."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words and expressions of `lexicon.toml`."""

    empty: frozenset[str]
    unranked: frozenset[str]
    same: dict[str, str]
    negative: re.Pattern[str]
    universal: re.Pattern[str]
    permission: re.Pattern[str]
    other: re.Pattern[str]
    redirects: re.Pattern[str]
    condition: re.Pattern[str]
    example: re.Pattern[str]
    numbers: dict[str, float]
    most: re.Pattern[str]
    least: re.Pattern[str]
    dimensions: tuple[Dimension, ...]
    opposites: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]
    """Words that exclude each other, if two passages are about the same."""


@cache
def lexicon() -> Lexicon:
    """The one of the package, read once."""
    document = tomllib.loads(resources.files(__package__).joinpath("lexicon.toml").read_text("utf-8"))
    words, bounds = document["words"], document["bounds"]
    patterns = {
        name: re.compile(words[name])
        for name in ("negative", "universal", "permission", "other", "redirects", "condition", "example")
    }
    return Lexicon(
        empty=frozenset(words["empty"].split()),
        unranked=frozenset(words["unranked"].split()),
        same={word: group.split()[0] for group in words["same"] for word in group.split()},
        numbers=bounds["numbers"],
        most=re.compile(bounds["most"]),
        least=re.compile(bounds["least"]),
        dimensions=tuple(
            Dimension(
                each["name"],
                each["kind"],
                each["topic"] == "same",
                {name: re.compile(value) for name, value in each["values"].items()},
                each.get("negated", False),
            )
            for each in document["dimension"]
        ),
        opposites=tuple(
            (_whole_words(each["one"]), _whole_words(each["other"])) for each in document["opposite"]
        ),
        **patterns,
    )


def _whole_words(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])")
