"""What the neural voice looks at: short stretches of a layer, a sentence or two each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_WINDOW = 160
"""Characters. Attacks are local: windows twice as long, or half, tell less on unseen sources."""
SHORTEST_SENTENCE = {"user": 60, "application": 25}
"""Characters from which on a sentence is looked at by itself too: its neighbours must not water it down.
In a document an order to the assistant may be short; a user's short sentences are mostly requests."""
_ENDS = re.compile(r"""(?<=[.!?。！？…;])["'”’)\]}*]*\s+|\n+|(?<=[。！？])""")


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a layer, by its place: its words are the prompt's own."""

    layer: str
    start: int
    end: int
    sentences: tuple[Window, ...] = ()
    """The sentences it consists of, if there are several worth looking at by themselves."""

    def touches(self, layer: str, start: int, end: int) -> bool:
        """Whether it overlaps a place."""
        return self.layer == layer and self.start < end and start < self.end


def windows(text: str, layer: str) -> list[Window]:
    """A layer as windows that follow each other: as many whole sentences as fit. Linear in the text."""
    groups: list[list[Window]] = []
    for start, end in _stretches(text):
        if not groups or end - groups[-1][0].start > LONGEST_WINDOW:
            groups.append([])
        groups[-1].append(Window(layer, start, end))
    return [group[0] if len(group) == 1 else _joined(group) for group in groups]


def _joined(group: list[Window]) -> Window:
    least = SHORTEST_SENTENCE.get(group[0].layer, 60)
    worth = tuple(sentence for sentence in group if sentence.end - sentence.start >= least)
    return Window(group[0].layer, group[0].start, group[-1].end, worth)


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """The places of the sentences without the space around them; a sentence too long is cut at a space."""
    begin = 0
    for boundary in _ENDS.finditer(text):
        yield from _cut(text, begin, boundary.start())
        begin = boundary.end()
    yield from _cut(text, begin, len(text))


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > LONGEST_WINDOW:
        space = text.rfind(" ", start + LONGEST_WINDOW // 2, start + LONGEST_WINDOW)
        stop = space if space > 0 else start + LONGEST_WINDOW
        yield from _stripped(text, start, stop)
        start = stop
    yield from _stripped(text, start, end)


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    words = text[start:end]
    begin = start + len(words) - len(words.lstrip())
    if begin < start + len(words):
        yield begin, start + len(words.rstrip())
