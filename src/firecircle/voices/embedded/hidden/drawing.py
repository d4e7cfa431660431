"""Where a text is drawn rather than written: lines without words that make large letters together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest

from firecircle.voices.embedded.hidden.decoded import Decoded
from firecircle.voices.embedded.hidden.drawn_letters import read_drawing

FEWEST_ROWS = 3
MOST_ROWS = 48
"""The most rows that are read as one drawing."""
LEAST_INK = 24
MOST_DRAWINGS = 8
"""How many drawings of a text are looked at, the largest: reading one that says nothing takes long."""
MOST_STRIPPED = 8

_WRITTEN = re.compile(r"([A-Za-z])(?!\1)([A-Za-z])(?!\1|\2)[A-Za-z]|[^\W\d_A-Za-z]{3}|[A-Za-z]:$")
"""Three different letters in a row, or a colon after the last: nobody draws with those."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Rows that may be a drawing, and where they stand."""

    rows: tuple[str, ...]
    start: int
    end: int
    ink: int


def drawn_large(text: str) -> Iterator[Decoded]:
    """What all drawings in a text say together."""
    largest = nlargest(MOST_DRAWINGS, drawings(text), key=lambda drawing: drawing.ink)
    read = [(drawing, _read(drawing)) for drawing in sorted(largest, key=lambda drawing: drawing.start)]
    telling = [(drawing, plain) for drawing, plain in read if plain]
    if telling:
        plain = " ".join(plain for _, plain in telling).lower()
        yield Decoded("letters drawn large", plain, telling[0][0].start, telling[-1][0].end)


def _read(drawing: Drawing) -> str:
    first, *others = drawing.rows
    if all(row.startswith(">") for row in drawing.rows if row):
        return read_drawing([row[1:] for row in drawing.rows])
    if drawing.start:
        return read_drawing(drawing.rows)
    # Stripping a text removes the indent of its first line only, so that indent is guessed.
    return max((read_drawing([" " * indent + first, *others]) for indent in range(MOST_STRIPPED)), key=len)


def drawings(text: str) -> Iterator[Drawing]:
    """The stretches of a text that may be drawings."""
    if text.count("\n") < FEWEST_ROWS - 1:
        return
    rows: list[str] = []
    at = start = end = ink = inked = 0
    for line in (*text.split("\n"), "written"):
        bare = line.strip().strip("`")
        if bare and not _WRITTEN.search(bare) and len(rows) < MOST_ROWS:
            start = start if rows else at
            rows.append(line.expandtabs().rstrip("\r"))
            end, ink, inked = at + len(line), ink + len(bare) - bare.count(" "), inked + 1
        elif rows and not bare and rows[-1].strip():
            rows.append("")
        else:
            if inked >= FEWEST_ROWS and ink >= LEAST_INK:
                yield Drawing(tuple(rows), start, end, ink)
            rows, ink, inked = [], 0, 0
        at += len(line) + 1
