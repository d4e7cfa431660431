"""A circle at a glance: the prompt with the words that count marked, one sentence, and what to do now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from firecircle.circle.pattern_types import known_type
from firecircle.circle.result import FireCircleResult
from firecircle.evaluation import GroundedQuote
from firecircle.names import LayerName
from firecircle.telling.verdict import deciding_pattern, headline_of
from firecircle.telling.words import counted
from firecircle.verdict import VerdictWord

AROUND = 90
"""Characters of the prompt shown before and after the marked words."""
LONGEST_MARK = 260
LONGEST_OPENING = 280
"""Characters of a prompt in which nothing is marked."""
LAYER_WORDS: dict[LayerName, str] = {
    "system": "system prompt",
    "application": "application text",
    "user": "user message",
    "turns": "earlier turns",
}
WITHOUT_ALARM: dict[VerdictWord, str] = {
    "unsure": "Not sure: the voices suspect something, but no voice is sure enough for an alarm.",
    "no_alarm": "No voice found manipulation.",
    "no_verdict": "There is no verdict: the circle did not finish.",
}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a layer: what is before the marked words, they themselves, and what is after them."""

    layer: LayerName
    before: str
    marked: str
    after: str


def excerpt_of(result: FireCircleResult) -> Excerpt:
    """The prompt around the words that decided; where none did, the beginning of the lowest layer."""
    place = next(iter(deciding_quotes(result)), None)
    if place is None:
        layer = result.prompt.layers[-1]
        more = "…" if len(layer.text) > LONGEST_OPENING else ""
        return Excerpt(layer.name, layer.text[:LONGEST_OPENING] + more, "", "")
    text = _text(result, place.layer)
    start, end = _whole_words(text, place.start, place.end)
    marked = text[place.start : place.end]
    cut = f"{marked[:LONGEST_MARK]}…" if len(marked) > LONGEST_MARK else marked
    before = ("…" if start else "") + text[start : place.start]
    return Excerpt(place.layer, before, cut, text[place.end : end] + ("…" if end < len(text) else ""))


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Some words more on both sides; a word is cut only where it is longer than that."""
    first, last = max(0, start - AROUND), min(len(text), end + AROUND)
    before, after = text[first:start], text[end:last]
    if first and not text[first - 1].isspace() and (gap := re.search(r"\s", before)):
        first += gap.end()
    if last < len(text) and not text[last].isspace() and (gap := re.search(r"\s\S*$", after)):
        last = end + gap.start()
    return first, last


def _text(result: FireCircleResult, layer: LayerName) -> str:
    return result.prompt.earlier_conversation if layer == "turns" else str(getattr(result.prompt, layer))


def deciding_quotes(result: FireCircleResult) -> Iterator[GroundedQuote]:
    """The words that an alarm or a doubt rests on: of the pattern spoken of, the deciding voice's first."""
    if result.verdict in ("alarm", "unsure"):
        pattern, reason = deciding_pattern(result), result.reason
        if reason and (pattern is None or reason.pattern_type in (None, pattern.pattern_type)):
            yield from reason.quotes
        yield from pattern.evidence if pattern else ()
        yield from reason.quotes if reason else ()


def sentence_of(result: FireCircleResult) -> str:
    """The verdict in one sentence that a person would say."""
    if result.verdict == "unread":
        return result.unread or "No voice could read the prompt."
    if result.verdict != "alarm":
        return WITHOUT_ALARM[result.verdict]
    headline = headline_of(result)
    voices = f"{headline.reached} of {counted(headline.active, 'voice')} raised the alarm."
    pattern = deciding_pattern(result)
    known = known_type(pattern.pattern_type) if pattern else None
    if next(deciding_quotes(result), None) is None:
        return f"A voice sees manipulation, but shows no words of the prompt. {voices}"
    if known is None:
        return f"The marked words try to manipulate the assistant. {voices}"
    return f"The marked words {known.does}. {voices}"
