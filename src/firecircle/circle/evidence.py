"""The evaluated text as evidence: fenced with markers that its author could not have known."""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from collections.abc import Iterable
from itertools import count

from firecircle.prompt import MultiNeutrosophicPrompt

NONCE_LENGTH = 12

_NO_LETTER = re.compile(r"[^0-9a-z]+")
_INVISIBLE_ASCII = {0xE0000 + code: chr(code) for code in range(0x80)}
_LOOK_ALIKES = str.maketrans("аɑαьвсϲԁеєҽғƒоο", "aaabbccdeeeff00") | _INVISIBLE_ASCII
"""Letters of other scripts that pass for those a code is made of, and tags, which nobody sees."""


def fresh_nonce(seed: int | None, texts: Iterable[str]) -> str:
    """A marker code that stands nowhere in the texts; with a seed, always the same for the same texts."""
    known = list(texts)
    for attempt in count():
        if seed is None:
            nonce = secrets.token_hex(NONCE_LENGTH // 2)
        else:
            digest = hashlib.sha256(f"{seed}/{attempt}".encode())
            for text in known:
                digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
            nonce = digest.hexdigest()[:NONCE_LENGTH]
        if not any(nonce in text for text in known):
            return nonce
    raise AssertionError("count() never ends")


def fence(nonce: str, label: str, text: str) -> str:
    """The text between two markers."""
    return f"<<{nonce} BEGIN {label}>>\n{text}\n<<{nonce} END {label.split(' | ')[0]}>>"


def evidence_text(prompt: MultiNeutrosophicPrompt, nonce: str) -> str:
    """All layers of a prompt, fenced and labelled. Every voice reads exactly this, in every round."""
    blocks = [
        fence(
            nonce,
            f"layer {layer.name}"
            + (f" | rank {layer.rank}" if layer.rank is not None else " | earlier turns")
            + f" | operator vouches for it: {layer.vouched}",
            layer.text,
        )
        for layer in prompt.layers
    ]
    return "\n\n".join((f"The marker code of this evaluation is {nonce}.", *blocks))


def without_nonce(text: str, nonce: str) -> str:
    """Words of another evaluator, who has seen the code, made unable to close a marker.

    The code is taken out in every spelling that looks or reads like it: in any case, width or script style,
    with invisible signs or separators in it.
    """
    if nonce not in _read_plainly(text):
        return text
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for letter in _read_plainly(character):
            letters.append(letter)
            places.append(place)
    plain = "".join(letters)
    kept: list[str] = []
    end = 0
    start = plain.find(nonce)
    while start >= 0:
        kept += [text[end : places[start]], "…"]
        end = places[start + len(nonce) - 1] + 1
        start = plain.find(nonce, start + len(nonce))
    return "".join((*kept, text[end:]))


def _read_plainly(text: str) -> str:
    """The letters and digits a text reads as, without space, punctuation and invisible signs."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text).casefold().translate(_LOOK_ALIKES)
    return _NO_LETTER.sub("", text.lower())
