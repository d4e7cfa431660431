"""What may reach the screen. Prompts and replies are hostile: they may try to steer the terminal."""

from __future__ import annotations

import re
import unicodedata

_TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor, erasing
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-~]?"  # everything else that begins with escape
)
_BREAKS = str.maketrans({"\t": "    ", **dict.fromkeys("\r\v\f\x85\u2028\u2029", "\n")})
_UNSEEN = ("Cc", "Cf", "Cs", "Co")
_UNSEEN_RANGES = (  # fillers and variation selectors, which no category tells apart
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xE0000, 0xE0FFF),
)
MOST_MARKS = 4
"""Accents on one letter beyond which a text only smears over its neighbours."""


def printable(text: str) -> str:
    """The text without terminal sequences, control, bidirectional, zero-width and other unseen characters.

    Line breaks survive, tabs become spaces.
    """
    plain = _TERMINAL_SEQUENCE.sub("", text.replace("\r\n", "\n")).translate(_BREAKS)
    kept: list[str] = []
    marks = 0
    for character in plain:
        if character.isascii() and (character.isprintable() or character == "\n"):
            kept.append(character)
            marks = 0
            continue
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if category not in _UNSEEN and marks <= MOST_MARKS and not _is_unseen(ord(character)):
            kept.append(character)
    return "".join(kept)


def printable_line(text: str, longest: int | None = None) -> str:
    """As `printable`, on one line, cut off if it is longer than allowed."""
    line = " ".join(printable(text).split())
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def shortened(name: str, longest: int) -> str:
    """The name with its middle left out, so that what tells it apart at either end stays."""
    if len(name) <= longest:
        return name
    tail = max(0, longest - 1) // 3
    return f"{name[: longest - 1 - tail]}…{name[len(name) - tail :]}"


def _is_unseen(code: int) -> bool:
    return (code & 0xFFFE) == 0xFFFE or any(first <= code <= last for first, last in _UNSEEN_RANGES)
