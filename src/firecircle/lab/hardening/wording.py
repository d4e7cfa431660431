"""What the wording of a system text guards and addresses, read without asking anybody."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from firecircle.circle.pattern_types import known_types
from firecircle.names import PATTERN_TYPES, PatternType
from firecircle.shapes import Shape, Text
from firecircle.store.bank.guidance import author_text
from firecircle.voices.embedded.language.prompt_reading import guard_marks

LONGEST = 20_000
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|\Z)")
_NAMED = re.compile(
    r"\b(?:never|not|n['’]t)\s+(?:\w+\s+){1,3}?((?:an?|the|any|another|your|these)\s+[\w' -]{3,40}\w)",
    re.IGNORECASE,
)
"""What a sentence says must never be done to something: the something."""
_LIMITING = re.compile(
    r"\b(?:not?|never|nobody|nothing|none|only|cannot|unless|regardless|however|whatever|refuse|decline|ignore|treat"
    r"|must|keep|even (?:if|when)|without)\b|n['’]t\b",
    re.IGNORECASE,
)


class Addressed(Shape):
    """One type of manipulation, and the sentences of a system text that say something against it."""

    pattern_type: Text
    sentences: tuple[Text, ...]
    addition: Text
    """What could be added against it."""

    @property
    def is_open(self) -> bool:
        """Whether the wording says nothing about it."""
        return not self.sentences


class Wording(Shape):
    """What a system text says, as far as words tell."""

    guards: tuple[Text, ...]
    """The sentences that hold something back or tie it to a condition."""
    types: tuple[Addressed, ...]

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
    sentences = list(_sentences(system[:LONGEST]))
    order = dict.fromkeys((*(kind for kind in first if kind in PATTERN_TYPES), *PATTERN_TYPES))
    return Wording(
        guards=tuple(sentence for sentence in sentences if guard_marks(sentence)),
        types=tuple(
            Addressed(
                pattern_type=kind,
                sentences=tuple(sentence for sentence in sentences if _addresses(sentence, kind)),
                addition=author_text(kind),
            )
            for kind in order
        ),
    )


def _sentences(text: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(text):
        if sentence := " ".join(match[0].split()):
            yield sentence


def _addresses(sentence: str, pattern_type: str) -> bool:
    folded = sentence.casefold().replace("’", "'")
    return bool(_LIMITING.search(sentence)) and any(
        re.search(rf"\b{re.escape(phrase)}", folded)
        for phrase in known_types()[PatternType(pattern_type)].addressed_by
    )
