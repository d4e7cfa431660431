"""A layer cut into passages: plain text, and the words that patterns rest on with who quoted them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from firecircle.circle.result import PatternObservation
from firecircle.prompt import MultiNeutrosophicPrompt

SHOWN_AT_ONCE = 20_000
"""Characters of a layer that are laid out without being asked for; the rest waits, folded away."""
PART = 20_000
"""Characters in one block of the folded rest, so that a browser lays out only what is on the screen."""

MOST_QUOTES = 20


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a layer; `marks` are the numbers of the patterns it is evidence of."""

    text: str
    marks: tuple[int, ...] = ()
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
    shown = []
    for layer in prompt.layers:
        spans = _spans(layer.name, patterns, len(layer.text))
        # A quote is never cut in two at the fold.
        fold = max([SHOWN_AT_ONCE, *(one.end for one in spans if one.start < SHOWN_AT_ONCE < one.end)])
        parts = [
            tuple(_passages(layer.text, spans, start, min(start + PART, len(layer.text))))
            for start in range(fold, len(layer.text), PART)
        ]
        shown.append(
            ShownLayer(
                layer.name,
                layer.rank,
                layer.vouched,
                len(layer.text),
                tuple(_passages(layer.text, spans, 0, min(fold, len(layer.text)))),
                tuple(parts),
                sum(one.start >= fold for one in spans),
            )
        )
    return tuple(shown)


@dataclass(frozen=True, slots=True)
class GatheredQuote:
    """The same words of the prompt, and everybody who quoted them."""

    text: str
    layer: str
    found_by: str
    voices: tuple[str, ...]


def gathered_quotes(found: PatternObservation) -> tuple[GatheredQuote, ...]:
    """A pattern's quotes, each once."""
    first = {(quote.layer, quote.start, quote.end): quote for quote in reversed(found.evidence)}
    return tuple(
        GatheredQuote(
            quote.text,
            quote.layer,
            quote.found_by,
            tuple(
                dict.fromkeys(
                    one.quoted_by for one in found.evidence if (one.layer, one.start, one.end) == place
                )
            ),
        )
        for place, quote in sorted(first.items())[:MOST_QUOTES]
    )


def parts_of(text: str) -> tuple[str, tuple[str, ...]]:
    """What is shown of a text at once, and the folded rest in parts."""
    rest = tuple(text[start : start + PART] for start in range(SHOWN_AT_ONCE, len(text), PART))
    return text[:SHOWN_AT_ONCE], rest


def _spans(name: str, patterns: Sequence[PatternObservation], length: int) -> list[_Span]:
    places: dict[tuple[int, int, int], list[str]] = {}
    for number, found in enumerate(patterns, start=1):
        for quote in found.evidence:
            if quote.layer == name and 0 <= quote.start < quote.end <= length:
                voices = places.setdefault((quote.start, quote.end, number), [])
                if quote.quoted_by not in voices:
                    voices.append(quote.quoted_by)
    return [
        _Span(start, end, number, f"{patterns[number - 1].pattern_type}: {', '.join(voices)}")
        for (start, end, number), voices in sorted(places.items())
    ]


def _passages(text: str, spans: Sequence[_Span], start: int, end: int) -> Iterator[Passage]:
    here = [one for one in spans if one.start < end and one.end > start]
    edges = sorted(
        {start, end, *(max(start, one.start) for one in here), *(min(end, one.end) for one in here)}
    )
    for left, right in pairwise(edges):
        over = [one for one in here if one.start <= left and one.end >= right]
        yield Passage(
            text[left:right],
            tuple(dict.fromkeys(one.number for one in over)),
            "; ".join(dict.fromkeys(one.seen_by for one in over)),
            tuple(dict.fromkeys(one.number for one in over if one.start == left)),
        )
