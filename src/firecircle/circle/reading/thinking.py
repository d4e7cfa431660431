"""Separate a voice's thinking from its answer: tentative numbers in a thought are not votes."""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

_TAG = re.compile(r"<(?P<close>/?)think(?:ing)?>", re.IGNORECASE)
_LINE_BEFORE = re.compile(r"(?:\A|\n|</?think(?:ing)?>)\s*\Z", re.IGNORECASE)
_LINE_AFTER = re.compile(r"[ \t\r]*(?:\n|\Z)")
_LONGEST_INDENT = 80
_MOST_TAGS = 1_000


class Spoken(NamedTuple):
    """The parts of a reply."""

    answer: str
    thinking: str | None
    ends_in_thought: bool
    """True if nothing follows the last thought, so that the answer may be inside it."""


def split_thinking(text: str) -> Spoken:
    """The answer and the thinking of a reply.

    The tags also occur in prompts under judgement, so an opening tag counts only at the start of a line,
    where models write their own. A closing tag without an opening one ends a thought too (some chat templates
    remove the opening one), if it has an edge of a line to itself and something follows it.
    """
    if "<" not in text or not _TAG.search(text):
        return Spoken(text, None, ends_in_thought=False)
    answered: list[str] = []
    thought: list[str] = []
    last_word = _last_word(text)
    position = 0
    inside = False
    for tag in islice(_TAG.finditer(text), _MOST_TAGS):
        opens = not tag["close"]
        if opens and not inside and _starts_line(text, tag.start()):
            answered.append(text[position : tag.start()])
            inside, position = True, tag.end()
        elif not opens and (inside or (_has_line_edge(text, tag) and tag.end() <= last_word)):
            thought.append(text[position : tag.start()])
            inside, position = False, tag.end()
    (thought if inside else answered).append(text[position:])
    thinking = "\n".join(thought).strip()
    ends_in_thought = bool(thought) and (inside or last_word < position)
    return Spoken("\n".join(answered), thinking or None, ends_in_thought)


def _last_word(text: str) -> int:
    return next((place for place in range(len(text) - 1, -1, -1) if text[place].isalnum()), -1)


def _starts_line(text: str, place: int) -> bool:
    before = text[max(0, place - _LONGEST_INDENT) : place]
    return bool(_LINE_BEFORE.search(before)) and (place <= _LONGEST_INDENT or not before.isspace())


def _has_line_edge(text: str, tag: re.Match[str]) -> bool:
    return _starts_line(text, tag.start()) or bool(_LINE_AFTER.match(text, tag.end()))
