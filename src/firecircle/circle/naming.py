"""Keeping names out of what voices are shown of each other: a named authority steers, right or wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePath

from firecircle.catalog import original_of
from firecircle.names import LOCAL, is_embedded, is_local
from firecircle.prompt import MultiNeutrosophicPrompt

SOMEBODY = "one of the evaluators"
"""Said for a name that several voices go by."""
FEWEST_LETTERS = 3
ORDINARY_WORDS = frozenset({"chat", "command", "instruct", "large", "nova", "seed", "small", "sonar", "step"})
"""Names of model families that are words of every text; alone they give nobody away."""

_SEPARATOR = re.compile(r"[-_. ]+")
_FAMILY = re.compile(r"[a-z]+", re.IGNORECASE)


class PeerNames:
    """The names of a circle's models and of their vendors, and the label to say instead of each."""

    def __init__(self, labels: Mapping[str, str], prompt: MultiNeutrosophicPrompt) -> None:
        self._prompt = prompt
        self._labels, self._pattern = _spellings(tuple(labels.items()))

    def hidden_in(self, text: str) -> str:
        """The text with labels for names."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda name: self._labels.get(_key(name[0]), SOMEBODY), text)

    def hidden_in_quote(self, quote: str) -> str:
        """Words of the prompt stay as they are, whatever names they hold; invented ones do not."""
        words = quote.rstrip("…").casefold()
        is_evidence = any(words in layer.text.casefold() for layer in self._prompt.layers)
        return quote if is_evidence else self.hidden_in(quote)


@lru_cache(maxsize=64)
def _spellings(labels: tuple[tuple[str, str], ...]) -> tuple[Mapping[str, str], re.Pattern[str] | None]:
    """The label for each name, and how names are found; circles of the same voices share them."""
    label_of: dict[str, str] = {}
    for model, label in labels:
        for name in _names_of(model):
            other = label_of.setdefault(_key(name), label)
            if other != label:
                label_of[_key(name)] = SOMEBODY
    longest_first = sorted(label_of, key=len, reverse=True)
    spellings = "|".join(r"[-_. ]?".join(map(re.escape, key.split(" "))) for key in longest_first)
    return label_of, re.compile(rf"(?<!\w)(?:{spellings})(?!\w)", re.IGNORECASE) if spellings else None


@lru_cache(maxsize=256)
def _names_of(model: str) -> frozenset[str]:
    """How a voice may call a model: by its whole id, by parts of it, by its family or its vendor."""
    original = original_of(model)
    names = {model, original}
    if is_local(model):
        names.add(PurePath(original.removeprefix(LOCAL)).stem)
    elif not is_embedded(model):
        _, _, after_provider = original.partition(":")
        vendor, slash, name = (after_provider or original).removeprefix("~").rpartition("/")
        name = name.partition(":")[0]
        family = _FAMILY.match(name)
        names |= {f"{vendor}{slash}{name}", name, vendor}
        names |= {family[0]} if family else set()
    return frozenset(
        name for name in names if len(name) >= FEWEST_LETTERS and name.lower() not in ORDINARY_WORDS
    )


def _key(name: str) -> str:
    return _SEPARATOR.sub(" ", name.lower()).strip()
