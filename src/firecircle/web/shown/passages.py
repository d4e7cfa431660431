"""A layer cut into passages: plain text, and the words that patterns rest on with who quoted them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal

from firecircle.circle.result import PatternObservation
from firecircle.prompt import MultiNeutrosophicPrompt

SHOWN_AT_ONCE = 20_000
"""Characters of a layer that are laid out without being asked for; the rest waits, folded away."""
MOST_WORDS, SAME_SHOWN = 800, 240
"""Words of a layer that are compared, at the cost of their square; how much is shown of what is the same."""
PART = 20_000
"""Characters in one block of the folded rest, so that a browser lays out only what is on the screen."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a layer; `patterns` are the numbers of those it is evidence of."""

    text: str
    patterns: tuple[int, ...] = ()
    seen_by: str = ""
    """Who quoted it, for which pattern, as one line."""
    opens: tuple[int, ...] = ()
    """Patterns whose quote begins here, so that its number is written once."""


@dataclass(frozen=True, slots=True)
class ShownLayer:
    """A layer of the prompt, ready to be written."""

    name: str
    rank: int | None
    vouched: str
    length: int
    passages: tuple[Passage, ...]
    rest: tuple[tuple[Passage, ...], ...]
    """What is folded away at first, in parts."""
    quotes_in_rest: int


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    number: int
    seen_by: str


def shown_layers(
    prompt: MultiNeutrosophicPrompt, patterns: Sequence[PatternObservation]
) -> tuple[ShownLayer, ...]:
    """Every layer with text, the words that patterns rest on marked with their number, from 1."""
    layers = []
    for layer in prompt.layers:
        spans = _spans(layer.name, patterns, len(layer.text))
        # A quote is never cut in two at the fold.
        fold = max([SHOWN_AT_ONCE, *(span.end for span in spans if span.start < SHOWN_AT_ONCE < span.end)])
        parts = [
            tuple(_passages(layer.text, spans, start, min(start + PART, len(layer.text))))
            for start in range(fold, len(layer.text), PART)
        ]
        layers.append(
            ShownLayer(
                layer.name,
                layer.rank,
                layer.vouched,
                len(layer.text),
                tuple(_passages(layer.text, spans, 0, min(fold, len(layer.text)))),
                tuple(parts),
                sum(span.start >= fold for span in spans),
            )
        )
    return tuple(layers)


def earlier_turns(prompt: MultiNeutrosophicPrompt, turn_number: int | None) -> str:
    """What is known of the earlier turns where none can be shown; empty where they are a layer."""
    if prompt.turns or turn_number not in (None, 1):
        return "" if prompt.turns else f"not known; this is turn {turn_number}"
    return "unknown" if turn_number is None else "none: known first turn"


@dataclass(frozen=True, slots=True)
class LayerChange:
    """A layer in two prompts: what both have, what only the first has, what only the second has."""

    name: str
    pieces: tuple[tuple[Literal["both", "first", "second", "skipped"], str], ...]
    """Empty where the layers are the same."""


def changes(first: MultiNeutrosophicPrompt, second: MultiNeutrosophicPrompt) -> tuple[LayerChange, ...]:
    """The layers of two prompts compared word by word; of a very long layer only the ends that differ."""
    texts = [{layer.name: layer.text for layer in prompt.layers} for prompt in (first, second)]
    return tuple(
        LayerChange(name, () if texts[0].get(name) == texts[1].get(name) else tuple(_pieces(*said)))
        for name in dict.fromkeys((*texts[0], *texts[1]))
        if any(said := [text.get(name, "") for text in texts])
    )


def _pieces(first: str, second: str) -> Iterator[tuple[Literal["both", "first", "second", "skipped"], str]]:
    words = [re.findall(r"\w+|\s+|[^\w\s]", text) for text in (first, second)]
    matcher = SequenceMatcher(str.isspace, words[0][:MOST_WORDS], words[1][:MOST_WORDS], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            same = "".join(words[0][a:b])
            if len(same) > 2 * SAME_SHOWN:
                yield "both", same[:SAME_SHOWN]
                yield "skipped", f"{len(same) - 2 * SAME_SHOWN:,} characters are the same"
                same = same[-SAME_SHOWN:]
            yield "both", same
        else:
            if a < b:
                yield "first", "".join(words[0][a:b])
            if c < d:
                yield "second", "".join(words[1][c:d])
    if any(len(every) > MOST_WORDS for every in words):
        yield "skipped", f"only the first {MOST_WORDS:,} words are compared"


def parts_of(text: str) -> tuple[str, tuple[str, ...]]:
    """What is shown of a text at once, and the folded rest in parts."""
    rest = tuple(text[start : start + PART] for start in range(SHOWN_AT_ONCE, len(text), PART))
    return text[:SHOWN_AT_ONCE], rest


def _spans(name: str, patterns: Sequence[PatternObservation], length: int) -> list[_Span]:
    places: dict[tuple[int, int, int], list[str]] = {}
    for number, pattern in enumerate(patterns, start=1):
        for quote in pattern.evidence:
            if quote.layer == name and 0 <= quote.start < quote.end <= length:
                voices = places.setdefault((quote.start, quote.end, number), [])
                if quote.quoted_by not in voices:
                    voices.append(quote.quoted_by)
    return [
        _Span(start, end, number, f"{patterns[number - 1].pattern_type}: {', '.join(voices)}")
        for (start, end, number), voices in sorted(places.items())
    ]


def _passages(text: str, spans: Sequence[_Span], start: int, end: int) -> Iterator[Passage]:
    here = [span for span in spans if span.start < end and span.end > start]
    edges = sorted(
        {start, end, *(max(start, span.start) for span in here), *(min(end, span.end) for span in here)}
    )
    for left, right in pairwise(edges):
        over = [span for span in here if span.start <= left and span.end >= right]
        yield Passage(
            text[left:right],
            tuple(dict.fromkeys(span.number for span in over)),
            "; ".join(dict.fromkeys(span.seen_by for span in over)),
            tuple(dict.fromkeys(span.number for span in over if span.start == left)),
        )
