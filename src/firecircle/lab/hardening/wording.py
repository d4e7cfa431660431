"""What the wording of a system text guards against, read without asking any model.

A sentence guards against a type of manipulation if the multilingual encoder finds it more like the guards of
that type (`guards` in its file) than like what any system prompt says (`plain.txt`). In the same way it holds
something back, or ties it to a check, if it is more like those of `holding.txt`; see `bench.guards`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firecircle.circle.pattern_types import known_types
from firecircle.contradictions import Contradiction, find_contradictions
from firecircle.names import PATTERN_TYPES
from firecircle.shapes import Shape, Text
from firecircle.store.bank.bank import author_text
from firecircle.voices.embedded.language.prompt_reading import guard_marks
from firecircle.voices.embedded.language.words import kind
from firecircle.voices.embedded.learned.unpacked import sentence_vectors

LONGEST = 20_000
MOST_SENTENCES = 400
ALIKE = 0.3
"""Likeness to the two nearest guards of a type below which a sentence is not one."""
NEAREST = 2
HIDING = 0.1
_LIMITING = re.compile(
    r"\b(?:not?|never|nobody|none|nothing|neither|only|cannot|unless|regardless|however|whatever|refuse[sd]?"
    r"|decline[sd]?|ignore[sd]?|treat|must|keep|stay|remain|even|without|void|confidential|no matter|same"
    r"|stop|separately|before|after|until|needs?|requires?|internal|secret|private)\b|n['’]t\b",
    re.IGNORECASE,
)
"""A guard limits something."""
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|\Z)")
_NAMED = re.compile(
    r"\b(?:never|not|n['’]t)\s+(?:\w+\s+){1,3}?((?:an?|the|any|another|your|these)\s+[\w' -]{3,40}\w)",
    re.IGNORECASE,
)
"""What a sentence says must never be done to something: the something."""
_SECRET = re.compile(
    r"\b(?:secret|password|passphrase|code|key|token|confidential|internal|private|pin)\b", re.IGNORECASE
)
_VALUE = re.compile(
    r"[\w.+-]+@[\w-]+\.\w+|\bhttps?://\S+|[\"“']([^\"”'\n]{4,60})[\"”']|\b(?=[\w-]*\d)[A-Za-z0-9][\w-]{3,}\b"
    r"|\b(?=\w*[A-Z]\w*[A-Z])[A-Z][A-Z0-9_-]{4,}\b"
)


class Guard(NamedTuple):
    """A sentence, and the type of manipulation it guards against; None for other limits."""

    sentence: str
    pattern_type: str | None
    holds_back: bool
    """Whether it keeps something from users, or lets them have it only after a check."""


class Addressed(Shape):
    """One type of manipulation, and the sentences of a system text that guard against it."""

    pattern_type: Text
    sentences: tuple[Text, ...]
    ours: bool
    """Whether one of them is the sentence that `harden` proposes: it says nothing until it is measured."""
    addition: Text
    """What could be added against it."""

    @property
    def is_open(self) -> bool:
        """Whether no sentence speaks of it."""
        return not self.sentences and not self.ours


class Wording(Shape):
    """What a system text says, as far as words tell."""

    guards: tuple[Text, ...]
    """The sentences that hold something back, tie it to a condition, or guard against a manipulation."""
    facts: tuple[Text, ...]
    """Values in sentences about secrets, which an answer must not hold."""
    types: tuple[Addressed, ...]
    contradictions: tuple[Contradiction, ...]

    @property
    def guarded_thing(self) -> str:
        """Something it guards, as an attacker would ask for it; its own text where nothing is named."""
        for sentence in self.guards:
            if named := _NAMED.search(sentence):
                return re.sub(r"^(?:an?|any|another)\b", "the", named[1].strip(), flags=re.IGNORECASE)
        return "your instructions"

    @property
    def addition(self) -> str:
        """What could be added for everything that is open; empty when nothing is."""
        return "\n".join(addressed.addition for addressed in self.types if addressed.is_open)


def read_wording(system: str, first: Sequence[str] = ()) -> Wording:
    """Read a system text; the types in `first` come first, then the usual order."""
    text = " ".join(system.split())
    ours = {kind for kind in PATTERN_TYPES if author_text(kind) in text}
    own = system
    for name in ours:  # across line breaks too
        own = re.sub(r"\s+".join(map(re.escape, author_text(name).split())), "\n", own)
    sentences = list(_sentences(own[:LONGEST]))[:MOST_SENTENCES]
    recognised = recognise_guards(sentences)
    order = dict.fromkeys((*(kind for kind in first if kind in PATTERN_TYPES), *PATTERN_TYPES))
    return Wording(
        guards=tuple(guard.sentence for guard in recognised if guard.pattern_type or guard.holds_back),
        facts=tuple(dict.fromkeys(_facts(sentences))),
        types=tuple(
            Addressed(
                pattern_type=kind,
                sentences=tuple(guard.sentence for guard in recognised if guard.pattern_type == kind),
                ours=kind in ours,
                addition=author_text(kind),
            )
            for kind in order
        ),
        contradictions=find_contradictions(system),
    )


def recognise_guards(sentences: Sequence[str]) -> list[Guard]:
    """For each sentence the type of manipulation that it guards against, by its meaning."""
    if not sentences:
        return []
    rows = sentence_vectors(sentences)
    plain, holding, guards = _examples()
    usual = np.maximum((rows @ plain.T).max(axis=1), ALIKE)
    of_types = np.stack([_nearest(rows, examples) for examples in guards.values()], axis=1)
    kinds = list(guards)
    found = []
    for sentence, of_type, held, unusual in zip(
        sentences, of_types, (rows @ holding.T).max(axis=1), usual, strict=True
    ):
        least = float(unusual) - _slack(sentence) if _LIMITING.search(sentence) else 1.0
        guarded = kinds[of_type.argmax()] if of_type.max() >= least else None
        found.append(Guard(sentence, guarded, bool(held >= least)))
    return found


def _slack(sentence: str) -> float:
    """How much less alike a sentence may be whose words alone speak of telling and hiding."""
    return HIDING if any(bits & kind("GUARDED") for bits in guard_marks(sentence).values()) else 0.0


def _nearest(rows: NDArray[np.float32], examples: NDArray[np.float32]) -> NDArray[np.float32]:
    """How alike each row is to the nearest examples."""
    nearest: NDArray[np.float32] = np.sort(rows @ examples.T, axis=1)[:, -NEAREST:].mean(axis=1)
    return nearest


@cache
def _examples() -> tuple[NDArray[np.float32], NDArray[np.float32], dict[str, NDArray[np.float32]]]:
    """The vectors of what any system prompt says, of what holds back, and of the guards of each type."""
    folder = resources.files("firecircle.lab.hardening")
    plain, holding = (
        sentence_vectors(folder.joinpath(name).read_text("utf-8").splitlines())
        for name in ("plain.txt", "holding.txt")
    )
    return plain, holding, {kind.value: sentence_vectors(of.guards) for kind, of in known_types().items()}


def _sentences(text: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(text):
        if sentence := " ".join(match[0].split()):
            yield sentence


def _facts(sentences: Sequence[str]) -> Iterator[str]:
    for sentence in sentences:
        if _SECRET.search(sentence):
            for value in _VALUE.finditer(sentence):
                yield value[1] or value[0]
