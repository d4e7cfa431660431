"""Control tokens of chat formats, made plain text before they reach a server that would obey them.

Servers that run open models write the messages into a chat template and read control tokens wherever they
are spelled: a judged text could so end its own message and go on as the system, whatever markers stand
around it. A space of no width inside the token makes it text again; a reader sees no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

UNSEEN = "\u200b"
"""A space of no width."""
FEW_BRACKETS = 100
"""In one text; more are searched for by one expression, which takes the same time for any number."""

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
# Only the bracket is taken, the rest is looked ahead at: one token may hide in another.
_SPELLED = re.compile(rf"<(?={_ANGLED_REST})|\[(?={_SQUARE_REST})")
_BROKEN = re.compile(rf"(?:(?<=<){UNSEEN}(?={_ANGLED_REST}))|(?:(?<=\[){UNSEEN}(?={_SQUARE_REST}))")


def as_plain_text(text: str) -> str:
    """The text with every control token of the known chat formats broken up."""
    if text.count("<") + text.count("[") > FEW_BRACKETS:
        return _SPELLED.sub(rf"\g<0>{UNSEEN}", text)
    # Every message of every call comes by, and has hardly any: looking at those alone is ten times quicker.
    places: list[int] = []
    for bracket in "<[":
        place = text.find(bracket)
        while place >= 0:
            following = text[place + 1 : place + 2]
            # Our own markers, `<<1f0c9d…`, are most of what there is. A digit begins no token, and of those
            # that begin with two brackets the third sign is one of two.
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
    """The text with broken control tokens whole again: what a model quotes is what was judged."""
    return _BROKEN.sub("", text) if UNSEEN in text else text


def broken_up(text: str, tokens: Iterable[str]) -> str:
    """The text with these tokens broken up."""
    for token in tokens:
        text = text.replace(token, token[0] + UNSEEN + token[1:])
    return text
