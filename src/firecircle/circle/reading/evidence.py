"""Recognise judged text that a voice repeats: a payload's numbers are never the voice's own."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WINDOW = 40
"""This many letters in a row, without spaces, are not repeated by chance."""
_REACH = 200
_BEGINNING = 100
_LONGEST_LINE = 2_000
_SHORT = 10_000
_LONG = 100_000
"""Longest squeezed text in the cache."""
_MOST_LOOKUPS = 300
"""A search of a megabyte takes about a millisecond; beyond this many, the safe answer is used."""
_WORD = re.compile(r"\w+")
_LINE_DRESS = " \t\r>*-•#|`\"'.!,;:“”"

_QUOTATION = re.compile(r'"[^"\n]{1,600}"|“[^”\n]{1,600}”|«[^»\n]{1,600}»|(?<!\w)\'[^\'\n]{3,600}\'(?!\w)')
_JSON_VALUE_BEFORE = re.compile(r"""["'”]\s{0,9}:\s{0,9}\Z""")


_ASCII_SPACE = b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
_SMALL_ASCII = bytes(range(256)).lower()
_BEYOND_ASCII = "firecircle.squeezed"


def squeeze(text: str) -> str:
    """A text without space and case, so that re-wrapping it does not hide its origin."""
    # As "".join(text.split()).casefold(), but several times faster: every question of every call passes here.
    letters = text.encode("ascii", _BEYOND_ASCII).translate(_SMALL_ASCII, _ASCII_SPACE)
    return letters.decode("utf-8", "surrogatepass")


def _squeezed_run(beyond: UnicodeError) -> tuple[bytes, int]:
    assert isinstance(beyond, UnicodeEncodeError)
    run = beyond.object[beyond.start : beyond.end]
    return "".join(run.split()).casefold().encode("utf-8", "surrogatepass"), beyond.end


codecs.register_error(_BEYOND_ASCII, _squeezed_run)


@lru_cache(maxsize=16)
def _squeezed_layer(text: str) -> str:
    """Cached: the layers stay the same while the question differs by voice."""
    return squeeze(text)


class Evidence:
    """The judged texts, prepared to find fragments of a reply in them."""

    def __init__(self, texts: Sequence[str]) -> None:
        ways = (_squeezed_layer if _SHORT < len(text) < _LONG else squeeze for text in texts)
        self._squeezed = [short for text, way in zip(texts, ways, strict=True) if (short := way(text))]
        self._known: dict[str, bool] = {}

    def holds(self, fragment: str) -> bool:
        """Whether the fragment is in a judged text, ignoring white space and case."""
        if not self._squeezed:
            return False
        fragment = fragment.lstrip()
        # Most replies differ from the first letters on and need no further search.
        return self._stands(squeeze(fragment[:_BEGINNING])) and self._stands(squeeze(fragment))

    def _stands(self, sought: str) -> bool:
        if not sought:
            return False
        if sought not in self._known:
            if len(self._known) >= _MOST_LOOKUPS:
                return True
            self._known[sought] = any(sought in text for text in self._squeezed)
        return self._known[sought]

    def echoes(self, text: str, start: int, end: int) -> bool:
        """Whether `text[start:end]` is part of a longer passage that repeats a judged text."""
        if not self._squeezed:
            return False
        line = _line_around(text, start, end)
        if len(_WORD.findall(line)) >= 3 and self.holds(line):
            return True
        before = squeeze(text[max(0, start - _REACH) : start])
        here = squeeze(text[start:end])
        after = squeeze(text[end : end + _REACH])
        side = max(0, _WINDOW - len(here))
        windows = (
            before[-side:] + here if side else here,
            here + after[:side],
            before[-(side // 2) :] + here + after[: side - side // 2] if side > 1 else here,
        )
        return any(len(window) >= _WINDOW and self.holds(window) for window in windows)


def _line_around(text: str, start: int, end: int) -> str:
    first = text.rfind("\n", max(0, start - _LONGEST_LINE), start) + 1
    last = text.find("\n", end, end + _LONGEST_LINE)
    if first == 0 and start > _LONGEST_LINE:
        return ""
    if last == -1:
        last = len(text)
    return text[first:last].strip(_LINE_DRESS) if last - first <= _LONGEST_LINE else ""


class Quotations:
    """The passages of a reply in quotation marks, except the strings of a JSON object."""

    def __init__(self, text: str) -> None:
        self._spans = [
            (match.start(), match.end())
            for match in _QUOTATION.finditer(text)
            if not _JSON_VALUE_BEFORE.search(text[max(0, match.start() - 20) : match.start()])
        ]
        self._starts = [start for start, _ in self._spans]

    def around(self, start: int, end: int) -> tuple[int, int] | None:
        """The start and end of the quotation around `text[start:end]`."""
        place = bisect_right(self._starts, start) - 1
        if place < 0:
            return None
        quotation = self._spans[place]
        return quotation if quotation[0] < start and end < quotation[1] else None
