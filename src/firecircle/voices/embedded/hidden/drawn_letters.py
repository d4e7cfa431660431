"""Letters drawn large with characters: found in a text, and read letter by letter or dot by dot.

What letters look like is learned from drawings (`training/glyphs.py`) and stored as numbers: checksums of
columns for fonts whose letters run into each other, thumbnails for letters of solid strokes.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from heapq import nlargest
from importlib import resources
from itertools import groupby, islice, product

from firecircle.voices.embedded.hidden.decoded import Decoded
from firecircle.voices.embedded.language.words import classes_of, word_list

WEIGHTS_FILE = "drawn.bin"
START, END = "^", "$"
SIDE = 8
"""Dots on each side of a thumbnail."""
FARTHEST = 14
"""How many of the 64 dots of a thumbnail may differ from a known letter's."""
DOUBT = 5
"""A letter may be the one meant if it is at most this many dots farther away than the nearest one."""
GUESSES = 256
"""How many spellings of a doubtful word are tried."""
FEWEST_ROWS, HEIGHTS = 3, range(5, 12)
"""How high solid letters are drawn."""
MOST_GLYPHS = 60
WIDEST = 240
Columns = tuple[str, ...]
Choices = tuple[tuple[int, str], ...]
"""Letters one drawing may be, each with the dots by which it differs."""
WordsRead = tuple[int, str]
"""How many letters stand in known words, and all the words."""

_HEADER = struct.Struct("<HI")
_FONT = struct.Struct("<BBBBI")
_EDGE = struct.Struct("<IB")
_THUMBNAIL = struct.Struct("<QB")

FEWEST_LINES = 3
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
    if text.count("\n") < FEWEST_LINES - 1:
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
            if inked >= FEWEST_LINES and ink >= LEAST_INK:
                yield Drawing(tuple(rows), start, end, ink)
            rows, ink, inked = [], 0, 0
        at += len(line) + 1


@dataclass(frozen=True, slots=True)
class Joined:
    """A font whose letters touch: what follows which letter after which columns."""

    height: int
    slant: int
    """By how many columns each row leans over the one below."""
    gap: int
    """How many blank columns end a word."""
    longest: int
    """The most columns from one letter to the next."""
    edges: Mapping[int, str]
    """The letters that may follow, by the checksum of the way to them."""


def pack(fonts: Sequence[Joined], solid: Mapping[int, str]) -> bytes:
    """The learned numbers, as a file."""
    parts = [_HEADER.pack(len(fonts), len(solid))]
    for font in fonts:
        edges = [(key, letter) for key, letters in sorted(font.edges.items()) for letter in letters]
        parts.append(_FONT.pack(font.height, font.slant, font.gap, font.longest, len(edges)))
        parts += [_EDGE.pack(key, ord(letter)) for key, letter in edges]
    parts += [_THUMBNAIL.pack(dots, ord(letter)) for dots, letter in sorted(solid.items())]
    return b"".join(parts)


@cache
def _learned() -> tuple[tuple[Joined, ...], tuple[tuple[int, str], ...]]:
    data = memoryview(resources.files(__package__).joinpath(WEIGHTS_FILE).read_bytes())
    (many, thumbnails), at = _HEADER.unpack_from(data), _HEADER.size
    fonts = []
    for _ in range(many):
        height, slant, gap, longest, count = _FONT.unpack_from(data, at)
        at += _FONT.size
        end = at + count * _EDGE.size
        edges: dict[int, str] = {}
        for key, letter in _EDGE.iter_unpack(data[at:end]):
            edges[key] = edges.get(key, "") + chr(letter)
        fonts.append(Joined(height, slant, gap, longest, edges))
        at = end
    end = at + thumbnails * _THUMBNAIL.size
    return tuple(fonts), tuple((dots, chr(letter)) for dots, letter in _THUMBNAIL.iter_unpack(data[at:end]))


def read_drawing(rows: Sequence[str]) -> str:
    """The words drawn in these rows; empty if none can be read."""
    rows = [row.rstrip()[:WIDEST] for row in rows]
    fonts, _ = _learned()
    return max((_in_font(rows, font) for font in fonts), key=len) or _in_dots(rows)


def columns_of(rows: Sequence[str], height: int, slant: int = 0) -> Columns:
    """The rows as columns of this height; letters that lean are set upright."""
    upright = [" " * (slant * at) + row for at, row in enumerate(rows)]
    upright += [""] * (height - len(rows))
    width = max(map(len, upright))
    return tuple("".join(column) for column in zip(*(row.ljust(width) for row in upright), strict=True))


def trimmed(columns: Columns) -> Columns:
    """The columns without blank ones around them."""
    inked = [at for at, column in enumerate(columns) if not column.isspace()]
    return columns[inked[0] : inked[-1] + 1] if inked else ()


def edge_key(letter: str, columns: Columns) -> int:
    """The checksum of the way from a letter over these columns."""
    return zlib.crc32("\n".join((letter, *columns)).encode())


def _in_font(rows: Sequence[str], font: Joined) -> str:
    """What the rows say in one font, line of letters by line of letters."""
    spelled: list[str] = []
    at = 0
    # The blank row above small letters may have been cut off, so the first line may begin above the rows.
    above = [""] * 2
    padded = [*above, *rows]
    while at < len(padded) - 2:
        words = _words(padded[at : at + font.height], font)
        if words:
            spelled += words
            at += font.height
        else:
            at += 1
    return " ".join(spelled)


def _words(rows: Sequence[str], font: Joined) -> list[str]:
    """The words of one line of letters; none unless the first begins like one and most can be read."""
    indent = min((len(row) - len(row.lstrip()) for row in rows if row), default=0)
    beginning = [row[indent : indent + font.longest + font.height] for row in rows]
    if not _begins(trimmed(columns_of(beginning, font.height, font.slant)), font):
        return []
    drawn = list(split(columns_of(rows, font.height, font.slant), font.gap))
    read = [_path(START, word, 0, font, set()) for word in drawn]
    known = [word for word in read if word is not None]
    return known if 2 * len(known) > len(read) else []


def _begins(columns: Columns, font: Joined) -> bool:
    most = min(len(columns), font.longest)
    return any(edge_key(START, columns[:end]) in font.edges for end in range(1, most + 1))


def _path(letter: str, word: Columns, at: int, font: Joined, tried: set[tuple[str, int]]) -> str | None:
    """The rest of the word from here on, if the columns lead to its end."""
    if (letter, at) in tried:
        return None
    tried.add((letter, at))
    if edge_key(letter, (*word[at:], END)) in font.edges:
        return ""
    for end in range(at, min(len(word), at + font.longest) + 1):
        for following in font.edges.get(edge_key(letter, word[at:end]), ""):
            rest = _path(following, word, end, font, tried)
            if rest is not None:
                return following + rest
    return None


def split(columns: Columns, gap: int) -> Iterator[Columns]:
    """The stretches between runs of at least `gap` blank columns."""
    start = blank = None
    for at, column in enumerate((*columns, *(" ",) * gap)):
        if not column.isspace():
            start = at if start is None else start
            blank = None
            continue
        blank = at if blank is None else blank
        if start is not None and at - blank + 1 >= gap:
            yield columns[start:blank]
            start = None


def thumbnail(columns: Columns) -> int:
    """A letter as 64 dots, whatever its size."""
    rows = list(map("".join, zip(*columns, strict=True)))
    inked = [at for at, row in enumerate(rows) if not row.isspace()]
    rows = rows[inked[0] : inked[-1] + 1]
    dots = 0
    for y, x in product(range(SIDE), range(SIDE)):
        row = rows[(2 * y + 1) * len(rows) // (2 * SIDE)]
        dots = dots << 1 | (row[(2 * x + 1) * len(row) // (2 * SIDE)] != " ")
    return dots


def _in_dots(rows: Sequence[str]) -> str:
    """What the rows say in letters of solid strokes that do not touch, line by line."""
    separate = [list(line) for inked, line in groupby(rows, lambda row: bool(row.strip())) if inked]
    # Lines of letters may stand close: then their height is unknown, and the one counts that says most.
    heights = (height for height in HEIGHTS if height < len(rows))
    close = ([rows[at : at + height] for at in range(0, len(rows), height)] for height in heights)
    ways: Sequence[Sequence[Sequence[str]]] = [separate, *close]
    return max(map(_lines_of_dots, ways))[1]


def _lines_of_dots(lines: Sequence[Sequence[str]]) -> WordsRead:
    read = [_line_of_dots(line) for line in lines if len(line) >= FEWEST_ROWS]
    return sum(known for known, _ in read), " ".join(words for _, words in read if words)


def _line_of_dots(rows: Sequence[str]) -> WordsRead:
    """One line of letters. How wide a gap ends a word is unknown: that width counts that makes most words."""
    columns = columns_of(rows, len(rows))
    glyphs = list(split(columns, 1))
    if not 2 <= len(glyphs) <= MOST_GLYPHS:
        return 0, ""
    nearest = _own_ink(glyphs) or [_nearest(thumbnail(glyph)) for glyph in glyphs]
    if 2 * sum(map(bool, nearest)) <= len(glyphs):
        return 0, ""
    best: WordsRead = (0, "")
    for gap in sorted({gap + 1 for gap in gaps_in(columns)}):
        letters = iter(nearest)
        words = [_spelled(list(islice(letters, len(list(split(word, 1)))))) for word in split(columns, gap)]
        known = sum(len(word) for word in words if is_word(word))
        if 2 * known > len(glyphs):
            best = max(best, (known, " ".join(word for word in words if word)))
    return best


def gaps_in(columns: Columns) -> set[int]:
    """How many blank columns stand between inked ones, every number once."""
    gaps, run = set(), 0
    for column in trimmed(columns):
        if column.isspace():
            run += 1
        else:
            gaps.add(run)
            run = 0
    return gaps


def _own_ink(glyphs: Sequence[Columns]) -> list[Choices] | None:
    """The letters that each letter is drawn with, if that is how they are drawn."""
    inks = [{*"".join(glyph)} - {" "} for glyph in glyphs]
    letters = [next(iter(ink)).lower() for ink in inks if len(ink) == 1]
    if len(letters) < len(glyphs) or len({*letters}) < 2 or not "".join(letters).isalpha():
        return None
    return [((0, letter),) for letter in letters]


@lru_cache(maxsize=4096)
def _nearest(dots: int) -> Choices:
    """The letters that look most like this thumbnail, the nearest first."""
    nearest: dict[str, int] = {}
    for known, letter in _learned()[1]:
        distance = (dots ^ known).bit_count()
        if distance <= FARTHEST and distance < nearest.get(letter, SIDE * SIDE):
            nearest[letter] = distance
    best = min(nearest.values(), default=0)
    return tuple(sorted((far, letter) for letter, far in nearest.items() if far <= best + DOUBT))


def _spelled(choices: Sequence[Choices]) -> str:
    """The word these letters make: the nearest letters, or others nearly as near that make a known word."""
    if not all(choices):
        return ""
    first = "".join(choice[0][1] for choice in choices)
    if is_word(first):
        return first
    ways = islice(product(*choices), GUESSES)
    guesses = sorted((sum(far for far, _ in way), "".join(letter for _, letter in way)) for way in ways)
    return next((word for _, word in guesses if is_word(word)), first)


def is_word(word: str) -> bool:
    """Whether the vocabulary knows the word."""
    return len(word) > 1 and (
        word in word_list("common") or word in word_list("function") or classes_of(word) != 0
    )
