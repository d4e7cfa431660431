"""Learn what drawn letters look like: `python -m training.glyphs` writes voices/embedded/hidden/drawn.bin.

Needs `pyfiglet`, which draws the letters in fonts people draw with; no font is copied, only numbers are kept.
Of fonts whose letters touch or overlap every pair of letters is drawn, and a checksum is kept of the columns
from the middle of one letter to the middle of the next: a word is then a path from letter to letter. Of fonts
made of solid strokes each letter is kept as a thumbnail of 8 by 8 dots, which knows it in other sizes too.
With `--check` nothing is written: random sentences are drawn and read back.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase

from pyfiglet import Figlet

from firecircle.voices.embedded.hidden.drawn_letters import (
    END,
    START,
    WEIGHTS_FILE,
    Columns,
    Joined,
    columns_of,
    edge_key,
    gaps_in,
    pack,
    read_drawing,
    thumbnail,
    trimmed,
)
from firecircle.voices.embedded.language.words import word_list
from training import VOICES

JOINED = (
    "standard", "big", "small", "doom", "ogre", "shadow", "slant", "ansi_shadow", "block", "lean",
    "colossal", "starwars", "3-d", "epic", "graffiti", "chunky", "bulbhead", "rectangles",
)  # fmt: skip
SLANTED = ("slant", "lean")
SOLID = ("banner", "banner3", "alphabet", "letters", "ansi_regular", "5x7", "5x8", "6x9", "3x5")
MARKS = ".,!?"
LETTERS = ascii_uppercase + ascii_lowercase + MARKS


class Pen:
    """Draws texts in one font."""

    def __init__(self, font: str) -> None:
        self.font = font
        self.slant = int(font in SLANTED)
        self._figlet = Figlet(font, width=10_000)
        self.height = int(self._figlet.Font.height)

    def rows(self, text: str) -> list[str]:
        """The text as rows of characters."""
        return str(self._figlet.renderText(text)).split("\n")[: self.height]

    def columns(self, text: str) -> Columns:
        """The text as columns, upright, without blank ones around it."""
        return trimmed(columns_of(self.rows(text), self.height, self.slant))


def learn_joined(font: str) -> Joined:
    """The paths from letter to letter in one font."""
    pen = Pen(font)
    alone = {letter: pen.columns(letter) for letter in LETTERS}
    symbols = {letter: _twin(letter, alone) for letter in LETTERS}
    own = [letter for letter in LETTERS if symbols[letter] == letter and alone[letter]]
    pairs = {
        (a, b): pen.columns(a + b)
        for a in own
        for b in own
        if a not in MARKS and not (a.islower() and b.isupper())
    }
    middle = {letter: _middle(letter, alone[letter], pairs) for letter in own}
    edges: dict[int, str] = {}
    for letter in own:
        drawn, at = alone[letter], middle[letter]
        _add(edges, edge_key(START, drawn[: at + 1]), letter)
        _add(edges, edge_key(letter, (*drawn[at + 1 :], END)), END)
    spans = [len(edge) for edge in (alone[letter][: middle[letter] + 1] for letter in own)]
    for (a, b), drawn in pairs.items():
        edge = drawn[middle[a] + 1 : len(drawn) - (len(alone[b]) - middle[b]) + 1]
        _add(edges, edge_key(a, edge), b)
        spans.append(len(edge))
    gap = max(max(gaps_in(drawn)) for (_, b), drawn in pairs.items() if b not in MARKS) + 1
    return Joined(pen.height, pen.slant, gap, max(spans), edges)


def _add(edges: dict[int, str], key: int, letter: str) -> None:
    """Letters that begin alike share an edge until their ends tell them apart."""
    edges[key] = edges.get(key, "") + letter


def _twin(letter: str, alone: dict[str, Columns]) -> str:
    """The first letter that looks the same: fonts without small letters draw them as capitals."""
    return next(other for other in LETTERS if alone[other] == alone[letter])


def _middle(letter: str, drawn: Columns, pairs: dict[tuple[str, str], Columns]) -> int:
    """A column of the letter that no neighbour touches, as far as there is one."""
    left = min((_alike(pair, drawn) for (a, _), pair in pairs.items() if a == letter), default=len(drawn))
    right = min(
        (_alike(pair[::-1], drawn[::-1]) for (_, b), pair in pairs.items() if b == letter), default=len(drawn)
    )
    return min(max((left + len(drawn) - right) // 2, 0), len(drawn) - 1)


def _alike(first: Sequence[str], second: Sequence[str]) -> int:
    """How many columns are the same from the beginning."""
    pairs = zip(first, second, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def learn_solid() -> dict[int, str]:
    """The thumbnails of all solid letters."""
    letters: dict[int, str] = {}
    for font in SOLID:
        pen = Pen(font)
        for letter in ascii_uppercase + ascii_lowercase:
            if drawn := pen.columns(letter):
                letters.setdefault(thumbnail(drawn), letter.lower())
    return letters


def check() -> None:
    """Draw random sentences in every font, and say how many words come back."""
    chance = random.Random(1)
    words = sorted(word for word in word_list("common") if len(word) > 1)
    for font in (*JOINED, *SOLID):
        pen, asked, right = Pen(font), 0, 0
        for number in range(12):
            sentence = " ".join(chance.choices(words, k=4))
            sentence = (sentence.upper(), sentence, sentence.capitalize())[number % 3]
            heard = read_drawing(pen.rows(sentence)).lower().split()
            asked += 4
            right += sum(word in heard for word in sentence.lower().split())
        print(f"{font:14} {right:3} of {asked} words read")


def main() -> None:
    """Learn the letters and write them, or check those that are shipped."""
    parser = argparse.ArgumentParser(
        prog="python -m training.glyphs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--check", action="store_true", help="draw random sentences and read them back, write nothing"
    )
    if parser.parse_args().check:
        check()
        return
    data = pack([learn_joined(font) for font in JOINED], learn_solid())
    (VOICES / "hidden" / WEIGHTS_FILE).write_bytes(data)
    print(f"wrote {WEIGHTS_FILE}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
