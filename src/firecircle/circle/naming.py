"""Hide names in what voices see of each other: a named authority has influence, right or wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import PurePath

from firecircle.catalog import family_of, original_of
from firecircle.languages import roughly_read_advisory
from firecircle.names import LOCAL, is_embedded, is_local, is_person
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text

SOMEBODY = "one of the evaluators"
"""Replaces a name that several voices share."""
FEWEST_LETTERS, FEWEST_IN_A_PART = 3, 4
ORDINARY_WORDS = frozenset(
    (
        *("air", "base", "beta", "chat", "code", "coder", "command", "deep", "distill", "extended"),
        *("fast", "flash", "free", "image", "inception", "instruct", "large", "latest", "light", "liquid"),
        *("lite", "long", "max", "medium", "meta", "micro", "mini", "nano", "next", "nova", "online"),
        *("plus", "preview", "pro", "reasoner", "reasoning", "reflection", "research", "search", "seed"),
        *("small", "sonar", "step", "thinking", "turbo", "ultra", "vision", "writer"),
    )
)
"""Names and parts of names that are ordinary words; alone they do not identify a voice."""
TIERS = frozenset(("haiku", "opus", "sonnet"))
ALSO_CALLED = {"gpt": "chatgpt", "chatgpt": "gpt"}

_SEPARATOR = re.compile(r"[-_. ]+")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_FAMILY = re.compile(r"[a-z]+", re.IGNORECASE)
_VERSION = r"v?\d\w*(?:\.\d\w*)*"


class PeerNames:
    """The names of a circle's models and their vendors, and the label that replaces each."""

    def __init__(self, labels: Mapping[str, str], prompt: MultiNeutrosophicPrompt) -> None:
        self._prompt = prompt
        self._labels, self._pattern = _spellings(tuple(labels.items()))

    def hidden_in(self, text: str) -> str:
        """The text with labels for names, except for names that occur in the prompt itself."""
        return text if self._pattern is None else self._pattern.sub(self._label, text)

    def _label(self, found: re.Match[str]) -> str:
        is_evidence = f" {_BETWEEN_WORDS.sub(' ', found[0].lower())} " in self._words_of_prompt
        return found[0] if is_evidence else self._labels.get(_key(found[1]), SOMEBODY)

    @cached_property
    def _words_of_prompt(self) -> str:
        texts = " ".join(layer.text for layer in self._prompt.layers)
        return f" {_BETWEEN_WORDS.sub(' ', texts.lower())} "


@lru_cache(maxsize=64)
def _spellings(labels: tuple[tuple[str, str], ...]) -> tuple[Mapping[str, str], re.Pattern[str] | None]:
    """The label for each name, and the expression that finds names; cached for circles of the same voices."""
    label_of: dict[str, str] = {}
    for model, label in labels:
        for name in _names_of(model):
            other = label_of.setdefault(_key(name), label)
            if other != label:
                label_of[_key(name)] = SOMEBODY
    if not label_of:
        return label_of, None
    names = "|".join(
        r"[-_. ]?".join(map(re.escape, key.split(" "))) for key in sorted(label_of, key=len, reverse=True)
    )
    parts = {part for key in label_of for part in key.split(" ") if part.isalpha()}
    words = "|".join(sorted(ORDINARY_WORDS | TIERS | parts, key=len, reverse=True))
    # A version after a name belongs to it, as in `DeepSeek-V3.1` and `Claude 3.5 Sonnet`. After a space a
    # word must be capitalised: "Claude long ago" keeps its words.
    tail = rf"(?:(?:[-_. ]?{_VERSION}|(?:[-_]|[ ](?-i:(?=[A-Z])))(?:{words}))(?!\w))*"
    return label_of, re.compile(rf"(?<!\w)({names}){tail}(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=256)
def _names_of(model: str) -> frozenset[str]:
    """The names a voice may use for a model: its whole id, parts of it, its family or its vendor."""
    original = original_of(model)
    names = {model, original}
    if is_local(model):
        names.add(PurePath(original.removeprefix(LOCAL)).stem)
    elif not is_embedded(model) and not is_person(model):  # no peer knows a person's name: it may be a word
        names.update(_names_of_hosted(original))
    return frozenset(
        name for name in names if len(name) >= FEWEST_LETTERS and name.lower() not in ORDINARY_WORDS
    )


def _names_of_hosted(model: str) -> Iterator[str]:
    _, _, after_provider = model.partition(":")
    vendor, slash, name = (after_provider or model).removeprefix("~").rpartition("/")
    name = name.partition(":")[0]
    yield from (f"{vendor}{slash}{name}", vendor)
    parts = _SEPARATOR.split(name)
    yield from (" ".join(parts[:several]) for several in range(1, len(parts) + 1))
    yield from (part for part in parts if part.isalpha() and len(part) >= FEWEST_IN_A_PART)
    if family := _FAMILY.match(name):
        yield from (family[0], ALSO_CALLED.get(family[0].lower(), ""))
    if known := family_of(model):
        yield known.provider_lineage


def _key(name: str) -> str:
    return _SEPARATOR.sub(" ", name.lower()).strip()


LONGEST_PASSAGE = 80
MOST_PASSAGES = 5

_JUDGE = (
    r"(?:evaluators?"
    r"|(?:AI|LLM|safety|security|moderation|automated)[ -](?:judges?|reviewers?|classifiers?|graders?)"
    r"|(?:content|safety|prompt|injection)[ -](?:classifiers?|filters?|detectors?))"
)
_WAYS: dict[str, tuple[str, ...]] = {
    "speaks to evaluators": (
        rf"\b(?:dear|attention|(?:(?:note|message|instructions?) )?(?:to|for))"
        rf" (?:all |the |any |every |you,? )*{_JUDGE}\b",
        rf"\b{_JUDGE} (?:must|should|shall|have to|need to|are (?:asked|required) to)\b",
        rf"\byou,? (?:are|as) (?:an? |the )?{_JUDGE}\b",
    ),
    "reports what other evaluators said": (
        r"\b(?:other|all|both|previous|the) (?:\w+ ){0,2}evaluators? (?:\w+ ){0,3}"
        r"(?:cleared|agreed?|approved|found|concluded|confirmed|rated)\b",
        r"\bevaluator [A-J]\b",
    ),
    "brings a verdict": (
        r"[\"']?\b(?:falsehood|indeterminacy)\b[\"']?\s*[:=]\s*[01]?\.?\d",
        r"\bverdict[\"']?\s*[:=]\s*[\"']?(?:no_)?violation\b",
    ),
    "plays a round": (
        r"(?m:^)\W*round \d\b.{0,40}\b(?:consensus|synthesis|discussion|evaluators?)\b",
        r"\b(?:consensus|final verdict) (?:was |is )?(?:reached|no_violation)\b",
    ),
    "carries tokens of a chat template": (
        r"<\|(?:im_start|im_end|eot_id|start_header_id|system|user|assistant)\|>",
        r"\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>",
    ),
    "redefines the scale": (
        r"\b(?:falsehood|truth|scale)\b.{0,60}\b(?:(?:is|are) (?:reversed|inverted|swapped)"
        r"|means? the opposite|now means)\b",
        r"\b(?:invert|reverse|swap) (?:the |your )?(?:scale|truth|falsehood|scores?)\b",
    ),
}
_NEEDED = {
    "speaks to evaluators": ("evaluator", "judge", "reviewer", "classifier", "grader", "filter", "detector"),
    "reports what other evaluators said": ("evaluator",),
    "brings a verdict": ("falsehood", "indeterminacy", "verdict"),
    "plays a round": ("round ", "consensus ", "final verdict "),
    "carries tokens of a chat template": ("<|", "inst]", "sys>>", "_of_turn>"),
    "redefines the scale": ("falsehood", "truth", "scale", "score"),
}
"""One of these words must occur; a search for words is a hundred times cheaper than for sentences."""
_PATTERNS = {way: re.compile("|".join(words), re.IGNORECASE) for way, words in _WAYS.items()}


class Addressing(Shape):
    """A passage of the evidence that addresses the evaluators."""

    layer: Text
    way: Text
    """What the passage does, in words."""
    passage: Text


def addressed_passages(prompt: MultiNeutrosophicPrompt) -> tuple[Addressing, ...]:
    """Passages that address the evaluators: the first of each kind in each layer, and a few at most."""
    found = (
        Addressing(layer=layer.name, way=way, passage=" ".join(match[0].split())[:LONGEST_PASSAGE])
        for layer in prompt.layers
        for way, pattern in _PATTERNS.items()
        if _may_hold(way, layer.text) and (match := pattern.search(layer.text))
    )
    return tuple(found)[:MOST_PASSAGES]


def _may_hold(way: str, text: str) -> bool:
    """Whether the sentence search is needed; always for text beyond ASCII, with its other rules of case."""
    if not text.isascii():
        return True
    lowered = text.lower()
    return any(word in lowered for word in _NEEDED[way])


def advisories_about(prompt: MultiNeutrosophicPrompt, heard: Mapping[str, str]) -> tuple[str, ...]:
    """The notes on a prompt judged by voices with these reasonings."""
    notes = (roughly_read_advisory(prompt, heard), addressed_advisory(prompt))
    return tuple(note for note in notes if note)


def addressed_advisory(prompt: MultiNeutrosophicPrompt) -> str | None:
    """The passages in one sentence, or None if nothing addresses the evaluators."""
    passages = addressed_passages(prompt)
    if not passages:
        return None
    named = "; ".join(f"{place.layer} {place.way} (“{place.passage}”)" for place in passages)
    return f"the evidence addresses those who judge it: {named}"
