"""Notes on a prompt: does it address the evaluators, and can the voices read it well?

An attack on a circle must address it; other texts hardly ever do. The notes do not change the verdict. They
warn the reader that the prompt may have manipulated the voices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from firecircle.languages import roughly_read_advisory
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text

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
