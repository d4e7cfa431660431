"""What may reach the screen: text without anything that hides in it or steers the terminal."""

from __future__ import annotations

import unicodedata

from firecircle.telling.safe_text import (
    LINE_BREAKS,
    MOST_STACKED,
    TERMINAL_SEQUENCE,
    UNUSUAL_SPACES,
    without_hidden,
)

_BREAKS = str.maketrans(
    {"\t": "    ", **dict.fromkeys(LINE_BREAKS, "\n"), **dict.fromkeys(UNUSUAL_SPACES, " ")}
)


def printable(text: str) -> str:
    """The text without terminal sequences and hidden characters. Line breaks survive, tabs become spaces."""
    plain = without_hidden(TERMINAL_SEQUENCE.sub("", text.replace("\r\n", "\n")).translate(_BREAKS))
    return plain if plain.isascii() else _without_towers(plain)


def printable_line(text: str, longest: int | None = None) -> str:
    """As `printable`, on one line, cut off if it is longer than allowed."""
    line = " ".join(printable(text).split())
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def _without_towers(text: str) -> str:
    """The text with no more than a few accents on each letter."""
    characters: list[str] = []
    accents = 0
    for character in text:
        is_accent = not character.isascii() and unicodedata.category(character) in ("Mn", "Me")
        accents = accents + 1 if is_accent else 0
        if accents <= MOST_STACKED:
            characters.append(character)
    return "".join(characters)
