"""Text as a reader must see it: characters that hide, reorder or overwrite others become named marks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from markupsafe import Markup, escape

MOST_MARKS = 2_000
"""Marks with a name of their own in one text; a text made of nothing else gets plain ones after these."""
_FILLERS = "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
_ODD_RUN = re.compile(
    r"([\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u08e2\u180e"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff\ue000-\uf8ff\ufeff\ufff0-\ufffb\ufffe\uffff"
    rf"\U000f0000-\U0010ffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a{_FILLERS}])\1*"
)
_ODD_ASCII_RUN = re.compile(r"([\x00-\x08\x0b-\x1f\x7f])\1*")
_NAMES = {"\x00": "NULL", "\x1b": "ESCAPE", "\x08": "BACKSPACE", "\r": "CARRIAGE RETURN", "\x7f": "DELETE"}
_EMOJI_JOINTS = "\u200d\ufe0f"
_SYMBOLS = ("So", "Sk")


def visible(text: str) -> Markup:
    """The text as markup, escaped, with a named mark for every character that cannot be seen."""
    return Markup("").join(_pieces(text.replace("\r\n", "\n")))


def visible_plain(text: str) -> str:
    """As `visible`, for places that hold no markup: titles, labels, attributes."""
    return _odd_runs_of(text).sub(_plain_run, text)


def one_line(text: str, longest: int = 160) -> str:
    """The beginning of a text on one line, in plain characters."""
    line = " ".join(text[: longest * 4].split())
    told = visible_plain(line[:longest])
    return f"{told}…" if len(line) > longest or len(text) > longest * 4 else told


def _odd_runs_of(text: str) -> re.Pattern[str]:
    """Most texts are long and plain, and a short list is searched ten times faster."""
    return _ODD_ASCII_RUN if text.isascii() else _ODD_RUN


def _pieces(text: str) -> Iterator[Markup]:
    odd = _odd_runs_of(text)
    place = marks = 0
    while marks < MOST_MARKS and (found := odd.search(text, place)):
        start, end = found.span()
        if _joins_emoji(text, start):
            yield escape(text[place : start + 1])
            place = start + 1
            continue
        yield escape(text[place:start])
        yield _mark(text[start], end - start)
        marks += 1
        place = end
    # Nobody reads thousands of marks, and a browser must not choke on them: the rest is told in plain text.
    yield escape(odd.sub(_plain_run, text[place:]))


def _mark(character: str, times: int) -> Markup:
    return Markup('<span class="odd" title="{}">{}{}</span>').format(
        _name(character), _code(character), _times(times)
    )


def _plain_run(found: re.Match[str]) -> str:
    return _plain(found[1], found.end() - found.start())


@lru_cache(maxsize=4096)
def _plain(character: str, times: int) -> str:
    return f"⟨{_code(character)}{_times(times)}⟩"


def _times(number: int) -> str:
    return f"×{number}" if number > 1 else ""


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


def _name(character: str) -> str:
    return f"{_code(character)} {unicodedata.name(character, _NAMES.get(character, 'control character'))}"


def _joins_emoji(text: str, place: int) -> bool:
    """Whether this is the joint that a pictogram is built with, and nothing smuggled in."""
    if text[place] not in _EMOJI_JOINTS or place == 0:
        return False
    before = unicodedata.category(text[place - 1])
    if before in _SYMBOLS:
        return True
    return (
        text[place - 1] == "\ufe0f"
        and text[place] == "\u200d"
        and place > 1
        and (unicodedata.category(text[place - 2]) in _SYMBOLS)
    )
