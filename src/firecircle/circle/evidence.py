"""The evaluated text as evidence: between markers that its author could not have known."""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from firecircle.prompt import MultiNeutrosophicPrompt

NONCE_LENGTH = 12

LINE_MARK = "| "
"""Before every line of quoted text, so that none of it can look like our own heading."""
TAKEN_OUT = "[removed marker]"
"""Replaces a removed marker code. It begins and ends with letters that no code has, so that the text around
it cannot form a code again.
"""

_NO_LETTER = re.compile(r"[^0-9a-z]+")
_LOOK_ALIKES = {
    "a": "аɑαᴀᎪ⍺ꓮᗅ𐊠",
    "b": "ьвʙβƅᏴꓐᖯᏏ𐊂",
    "c": "сϲᴄᏟꓚⲥᑕ𐐽𐊢",
    "d": "ԁᴅđɗᎠᏧꓓᗪ",
    "e": "еєҽᴇεɛ℮Ꭼꓰⴹ⋿",
    "f": "ғƒꜰϝքꓝꞙẝᖴ𐊇",
    "0": "oоοσօᴏøө〇◯⭘ഠဝⲟ𐐬𐓪ꓳ",
    "1": "ilіıɩӏǀιⲓⵏߊꓲ",
    "2": "ƨշᒿ",
    "3": "зʒӡȝɜვ",
    "4": "чᏎ",
    "6": "бᏮⳓ",
    "8": "ȣ𐌚",
    "9": "ⳋᏭ",
}
_SEEN_AS = {ord(alike): letter for letter, alikes in _LOOK_ALIKES.items() for alike in alikes}
"""Characters that look like those of a code, in lower case."""
_FIRST_LETTERS = (0x1F1E6, 0x1F150, 0x1F170)


def _sign(code: int) -> str:
    """An ASCII character as read in a code: O as 0, I and L as 1."""
    lower = chr(code).lower()
    return _SEEN_AS.get(ord(lower), lower)


_SEEN_AS |= {first + place: _sign(ord("a") + place) for first in _FIRST_LETTERS for place in range(26)}
"""Flag letters, and letters in filled circles and squares."""
_UNSEEN_AS = {0xE0000 + code: _sign(code) for code in range(0x80)}
_UNSEEN_AS |= {0xE0100 + code - 16: _sign(code) for code in range(16, 0x80)}
"""Tags and variation selectors, which spell ASCII and are not displayed."""
_READINGS = (_SEEN_AS | _UNSEEN_AS, _SEEN_AS | dict.fromkeys(_UNSEEN_AS, ""))
"""Two ways to read a text: with and without what is not displayed."""


def fresh_nonce(seed: int | None, texts: Iterable[str], same_for: Sequence[str] | None = None) -> str:
    """A marker code that occurs in none of the texts; with a seed, always the same for the same texts.

    With `same_for` it depends on these instead: all turns of a conversation share one, so that their common
    beginning is identical.
    """
    known = list(texts)
    given = known if same_for is None else same_for
    for attempt in count():
        if seed is None:
            nonce = secrets.token_hex(NONCE_LENGTH // 2)
        else:
            digest = hashlib.sha256(f"{seed}/{attempt}".encode())
            for text in given:
                digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
            nonce = digest.hexdigest()[:NONCE_LENGTH]
        if not any(nonce in text for text in known):
            return nonce
    raise AssertionError("count() never ends")


def fence(nonce: str, label: str, text: str) -> str:
    """The text between two markers."""
    return f"<<{nonce} BEGIN {label}>>\n{text}\n<<{nonce} END {label.split(' | ')[0]}>>"


def quoted(nonce: str, label: str, words: str) -> str:
    """Quoted text between two markers that it cannot close, with a mark on every line."""
    return fence(nonce, label, marked_lines(words, nonce, LINE_MARK))


def marked_lines(words: str, nonce: str, mark: str) -> str:
    """Quoted text without the marker code, and with a mark before every line."""
    return "\n".join(f"{mark}{line}".rstrip() for line in without_nonce(words, nonce).splitlines())


def evidence_text(prompt: MultiNeutrosophicPrompt, nonce: str) -> str:
    """All layers of a prompt, fenced and labelled.

    Every voice reads exactly this, in every round.
    """
    blocks = [
        fence(
            nonce,
            f"layer {layer.name}"
            + (f" | rank {layer.rank}" if layer.rank is not None else " | earlier turns")
            + f" | trusted: {layer.vouched}",
            layer.text,
        )
        for layer in prompt.layers
    ]
    return "\n\n".join((f"The marker code of this evaluation is {nonce}.", *blocks))


def without_nonce(text: str, nonce: str) -> str:
    """Text of another evaluator, who has seen the code, made unable to close a marker.

    The code is removed in every spelling that looks or reads like it: in any case, width, script or style of
    letter, with invisible characters or separators in it, and from right to left.
    """
    if text.isascii():
        return _without(text, nonce, _SEEN_AS)
    for reading in _READINGS:
        text = _without(text, nonce, reading)
    return text


def _without(text: str, nonce: str, reading: Mapping[int, str]) -> str:
    plain = _read_plainly(text, reading)
    if nonce not in plain and nonce[::-1] not in plain:
        return text
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for letter in _read_plainly(character, reading):
            letters.append(letter)
            places.append(place)
    kept: list[str] = []
    end = 0
    for code in re.finditer(f"{nonce}|{nonce[::-1]}", "".join(letters)):
        kept += [text[end : places[code.start()]], TAKEN_OUT]
        end = places[code.end() - 1] + 1
    return "".join((*kept, text[end:]))


def _read_plainly(text: str, reading: Mapping[int, str]) -> str:
    """The letters and digits that a text reads as, without space, punctuation and invisible characters."""
    if text.isascii():
        return _NO_LETTER.sub("", text.lower().translate(reading))
    plain = unicodedata.normalize("NFKD", text).casefold().translate(reading)
    digits = (sign if sign.isascii() else str(unicodedata.digit(sign, "")) for sign in plain)
    return _NO_LETTER.sub("", "".join(digits).lower())
