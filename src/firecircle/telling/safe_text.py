"""Which characters hide, reorder or steer. Prompts and replies are hostile: every screen asks here.

A terminal leaves such characters out and a page names them; which they are is decided once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, Protocol

HIDDEN_RANGES = (
    (0x0000, 0x0008),  # controls, but for tab and line feed
    (0x000B, 0x001F),
    (0x007F, 0x009F),
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # grapheme joiner
    (0x0600, 0x0605),  # signs that span numbers
    (0x061C, 0x061C),  # direction marks
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x115F, 0x1160),  # fillers that look like nothing
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),  # zero width, and more direction marks
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xD800, 0xF8FF),  # surrogates, private use
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),  # joiners of hieroglyphs
    (0x1BCA0, 0x1BCA3),  # shorthand
    (0x1D173, 0x1D17A),  # music
    (0xE0000, 0xE0FFF),  # tags
    (0xF0000, 0x10FFFF),  # private use
    *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, 0xF0000, 0x10000)),  # no characters at all
)
"""Characters that cannot be seen or move others. Tab and line feed are none of them."""

TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor, erasing
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-~]?"  # everything else that begins with escape
)
"""What steers a terminal, whole: without the escape alone its rest would look like words."""
LINE_BREAKS = "\r\v\f\x85\u2028\u2029"
"""Characters that break a line as a line feed does."""

_CONTROL = re.compile(r"([\x00-\x08\x0b-\x1f\x7f])\1*")
_HIDDEN = re.compile(f"([{''.join(f'{chr(first)}-{chr(last)}' for first, last in HIDDEN_RANGES)}])\\1*")
_NAMES = {"\x00": "NULL", "\x1b": "ESCAPE", "\x08": "BACKSPACE", "\r": "CARRIAGE RETURN", "\x7f": "DELETE"}
_EMOJI_JOINTS = "\u200d\ufe0f"
_SYMBOLS = ("So", "Sk")


class SafeLine(Protocol):
    """How a screen or page writes foreign text on one line so that nothing hides in it or steers it."""

    def __call__(self, text: str, longest: int | None = None, /) -> str:
        """The text, cut off if it is longer than allowed."""
        ...


class HiddenRun(NamedTuple):
    """The same hidden character, once or several times in a row."""

    character: str
    start: int
    end: int

    @property
    def code(self) -> str:
        """Its number, and how often it stands there."""
        times = self.end - self.start
        return f"U+{ord(self.character):04X}{f'×{times}' if times > 1 else ''}"

    @property
    def name(self) -> str:
        """Its number and the name it has in Unicode."""
        name = unicodedata.name(self.character, _NAMES.get(self.character, "control character"))
        return f"U+{ord(self.character):04X} {name}"


def hidden_runs(text: str) -> Iterator[HiddenRun]:
    """Every hidden character of a text. The joints that pictograms are built with are none."""
    pattern, place = _pattern_for(text), 0
    while match := pattern.search(text, place):
        start, place = match.span()
        if _joins_emoji(text, start):
            place = start + 1
            continue
        yield HiddenRun(match[1], start, place)


def without_hidden(text: str) -> str:
    """The text as if hidden characters were not there, the joints of pictograms included."""
    return _pattern_for(text).sub("", text)


def with_codes(text: str) -> str:
    """The text with the number of every hidden character in its place."""
    return _pattern_for(text).sub(lambda match: _code(match[1], match.end() - match.start()), text)


def line_with_codes(text: str, longest: int | None = None) -> str:
    """As `with_codes`, on one line, cut off if it is longer than allowed."""
    if longest is None:
        return with_codes(" ".join(text.split()))
    line = " ".join(text[: longest * 4].split())
    is_cut = len(line) > longest or len(text) > longest * 4
    return f"{with_codes(line[:longest])}{'…' if is_cut else ''}"


def _pattern_for(text: str) -> re.Pattern[str]:
    """Most texts are long and plain, and a short list is searched ten times faster."""
    return _CONTROL if text.isascii() else _HIDDEN


@lru_cache(maxsize=4096)
def _code(character: str, times: int) -> str:
    return f"⟨{HiddenRun(character, 0, times).code}⟩"


def _joins_emoji(text: str, place: int) -> bool:
    """Whether this is the joint that a pictogram is built with, and nothing smuggled in."""
    if text[place] not in _EMOJI_JOINTS or place == 0:
        return False
    if unicodedata.category(text[place - 1]) in _SYMBOLS:
        return True
    return (
        text[place - 1] == "\ufe0f"
        and text[place] == "\u200d"
        and place > 1
        and unicodedata.category(text[place - 2]) in _SYMBOLS
    )
