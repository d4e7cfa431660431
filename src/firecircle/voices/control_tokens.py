"""Turn control tokens of chat formats into plain text before they reach a server that would obey them.

Servers of open models put the messages into a chat template and read control tokens anywhere: a judged text
could end its own message and continue as the system, whatever markers are around it. A zero-width space
inside the token makes it text; a reader sees no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

UNSEEN = "\u200b"
"""A zero-width space."""
FEW_BRACKETS = 100
"""In one text; more are searched by one expression, whose time does not depend on the number."""

_ANGLED = (
    r"[|｜][^<>\n]{1,40}[|｜]>",  # ChatML, Llama 3, Phi, GPT-OSS, Command R, Granite, DeepSeek
    r"\|[A-Za-z_]{1,30}>|[A-Za-z_]{1,30}\|>",  # one-sided ones
    r"/?(?:s|bos|eos|unk|pad|mask|cls|sep)>",
    r"</?SYS>>",
    r"(?:start|end)_of_(?:turn|image|role|text)>",
    r"/?(?:think|tools?|tool_call|tool_response)>",
    r"(?:unused|reserved_|extra_id_|SPECIAL_)\d{1,4}>",
)
_SQUARE = (
    r"/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|MODEL_SETTINGS|THINK)\]",
    r"(?:ARGS|CALL_ID|PREFIX|MIDDLE|SUFFIX|IMG|IMG_END|IMG_BREAK|gMASK|sMASK)\]",
)
_ANGLED_REST, _SQUARE_REST = "|".join(_ANGLED), "|".join(_SQUARE)
_NO_BEGINNING = frozenset("0123456789 \n=>-")
# Only the bracket is consumed, the rest is a lookahead: one token may hide in another.
_SPELLED = re.compile(rf"<(?={_ANGLED_REST})|\[(?={_SQUARE_REST})")
_BROKEN = re.compile(rf"(?:(?<=<){UNSEEN}(?={_ANGLED_REST}))|(?:(?<=\[){UNSEEN}(?={_SQUARE_REST}))")


def as_plain_text(text: str) -> str:
    """The text with every control token of the known chat formats broken up."""
    if text.count("<") + text.count("[") > FEW_BRACKETS:
        return _SPELLED.sub(rf"\g<0>{UNSEEN}", text)
    # Every message of every call passes here, with hardly any brackets; checking only those is fast.
    places: list[int] = []
    for bracket in "<[":
        place = text.find(bracket)
        while place >= 0:
            following = text[place + 1 : place + 2]
            # Most brackets are our own markers, `<<1f0c9d…`. A digit begins no token, and in those that begin
            # with two brackets the third character is one of two.
            if following == "<":
                may_begin = text[place + 2 : place + 3] in ("S", "/")
            else:
                may_begin = following not in _NO_BEGINNING
            if may_begin and _SPELLED.match(text, place):
                places.append(place + 1)
            place = text.find(bracket, place + 1)
    if not places:
        return text
    places.sort()
    parts = [text[start:end] for start, end in pairwise((0, *places, len(text)))]
    return UNSEEN.join(parts)


def as_written(text: str) -> str:
    """The text with broken control tokens restored: a quote must match the judged text."""
    return _BROKEN.sub("", text) if UNSEEN in text else text


def broken_up(text: str, tokens: Iterable[str]) -> str:
    """The text with these tokens broken up."""
    for token in tokens:
        text = text.replace(token, token[0] + UNSEEN + token[1:])
    return text
