"""What a decoder yields: plain text, and where in the original its disguise stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

LONGEST = 4_000
"""The longest stretch that is decoded as one."""
NEAR = 200
"""Two stretches with no more than this between them are one."""
FAR = 400
"""How far from an odd sign the ends of its sentence are looked for."""
_ENDS = ("\n", ". ", "! ", "? ")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Plain text that was hidden, how, and where its disguise stands; `invisible` if nothing shows at all."""

    method: str
    plain: str
    start: int
    end: int
    invisible: bool = False
    spelt: Callable[[str], str] | None = None
    """What one sign of the disguise stands for, where every sign stands for itself alone."""

    def place(self, text: str, first: int, last: int) -> tuple[int, int]:
        """Where in `text` the plain signs from `first` to `last` are written, else where all of it is."""
        if self.spelt is None:
            return self.start, self.end
        at, start = 0, self.start
        for index in range(self.start, self.end):
            if at <= first:
                start = index
            at += len(self.spelt(text[index]))
            if at >= last:
                return start, index + 1
        return start, self.end


def stretches(text: str, odd: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The sentences around odd signs, neighbours taken together. The places of the signs come in order."""
    start = end = -1
    for at in odd:
        if at < end:
            continue
        first = max(end, _before(text, at))
        last = _after(text, at)
        if start >= 0 and first - end <= NEAR and last - start <= LONGEST:
            end = last
            continue
        if start >= 0:
            yield start, end
        start, end = first, last
    if start >= 0:
        yield start, end


def _before(text: str, at: int) -> int:
    far = max(0, at - FAR)
    places = (text.rfind(sign, far, at) for sign in _ENDS)
    return max((place + 1 for place in places if place >= 0), default=far)


def _after(text: str, at: int) -> int:
    far = min(len(text), at + FAR)
    places = (text.find(sign, at + 1, far) for sign in _ENDS)
    return min((place + 1 for place in places if place >= 0), default=far)
