"""Reading the patterns a voice reports, in whatever shape and under whatever names it wrote them."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from firecircle.evaluation import PatternNote

if TYPE_CHECKING:
    from collections.abc import Iterator


NAMES_KEPT = 1_000
"""How many are remembered: voices use the same dozen over and over."""
_NOT_A_LETTER = re.compile(r"[^a-z]")
_LONGEST_NAME = 60


def plain_name(key: str) -> str:
    """The letters of a name in lower case; nothing of one that is too long to be a name."""
    return _letters(key) if len(key) <= _LONGEST_NAME else ""


@lru_cache(maxsize=NAMES_KEPT)
def _letters(key: str) -> str:
    return _NOT_A_LETTER.sub("", key.casefold())


_TYPE_KEYS = ("type", "patterntype", "pattern", "name", "patternname", "category", "label")
_DESCRIPTION_KEYS = ("description", "desc", "explanation", "details", "detail", "observation", "summary")
_QUOTE_KEYS = ("quote", "quotes", "evidence", "example", "examples", "excerpt", "excerpts")
_LAYER_KEYS = ("layer", "layers", "layername", "location")
_KNOWN_KEYS = frozenset(_TYPE_KEYS + _DESCRIPTION_KEYS + _QUOTE_KEYS + _LAYER_KEYS)

_NOTHING = re.compile(
    r"\W*(?:(?:none|n/?a|nil|null|nothing)(?:\s+(?:observed|found|detected|identified|noted|seen))?"
    r"|no(?:\s+\w+)?\s+patterns?(?:\s+\w+)?)?\W*",
    re.IGNORECASE,
)
_MOST_WORDS_OF_A_TYPE = 6
_MOST_NOTES = 500


def pattern_notes(value: Any) -> tuple[PatternNote, ...]:
    """The notes in a list, a single object, a mapping of type to description, or one text."""
    return tuple(islice(_notes(value), _MOST_NOTES))


def as_text(value: Any, between: str = ", ") -> str:
    """A member as text: lists are joined, numbers written out, anything else is nothing."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return between.join(filter(None, (as_text(each) for each in value if not isinstance(each, list))))
    if isinstance(value, dict):
        parts = (
            (str(key), as_text(each)) for key, each in value.items() if not isinstance(each, dict | list)
        )
        return between.join(f"{key}: {text}" for key, text in parts if text)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ""


def _notes(value: Any, type_: str | None = None) -> Iterator[PatternNote]:
    if isinstance(value, list):
        for item in value:
            if not isinstance(item, list):
                yield from _notes(item, type_)
    elif isinstance(value, str):
        if not _is_nothing(value):
            yield PatternNote(description=value.strip(), type=type_)
    elif isinstance(value, dict):
        members = {plain_name(str(key)): member for key, member in value.items()}
        if members.keys() & _KNOWN_KEYS:
            yield from _one_per_quote(members, type_)
        elif type_ is None:
            for key, member in value.items():
                yield from _notes(member, str(key))
    elif value and type_:
        yield PatternNote(description=type_, type=type_)


def _one_per_quote(members: dict[str, Any], type_: str | None) -> Iterator[PatternNote]:
    named = _first(members, _TYPE_KEYS)
    description = _first(members, _DESCRIPTION_KEYS)
    if len(named.split()) > _MOST_WORDS_OF_A_TYPE:
        named, description = "", description or named
    quotes = _quotes(members)
    description = description or named or (type_ or "") or (quotes[0] if quotes else "")
    if _is_nothing(description):
        return
    for quote in quotes or [""]:
        yield PatternNote(
            description=description,
            type=named or type_,
            quote=quote or None,
            layer=_first(members, _LAYER_KEYS) or None,
        )


def _quotes(members: dict[str, Any]) -> list[str]:
    for key in _QUOTE_KEYS:
        value = members.get(key)
        texts = [as_text(each) for each in value] if isinstance(value, list) else [as_text(value)]
        kept = [text for text in texts if text]
        if kept:
            return kept
    return []


def _first(members: dict[str, Any], keys: tuple[str, ...]) -> str:
    return next(filter(None, (as_text(members.get(key)) for key in keys)), "")


def _is_nothing(text: str) -> bool:
    return len(text) <= 200 and bool(_NOTHING.fullmatch(text))
