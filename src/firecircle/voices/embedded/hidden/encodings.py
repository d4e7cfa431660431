"""Codes that spell a text with other signs, read back: bytes as letters and digits, escapes, signals.

All that is found is decoded: that is cheap. What is decoded to something costs, and is bounded by the caller.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterator

from firecircle.voices.embedded.hidden.decoded import Decoded

READABLE, WIDE = 0.95, 0.4
"""The share of characters that must be printable, and of zero bytes that makes text of two bytes a letter.
Set by hand."""
MOST_SKIPPED = 3
FEWEST_DIGITS, FEWEST_PERCENTS, FEWEST_ESCAPES, FEWEST_SIGNALS, FEWEST_CAPITALS = 8, 5, 4, 20, 4


_READABLE = re.compile(rb"[\t\n\r\x20-\x7e]{12,}")


def printable(data: bytes) -> str | None:
    """The text that bytes spell, or what stands readable among others; None if there is nothing to read."""
    try:
        plain = _wide(data) or data.decode("utf-8")
    except UnicodeDecodeError:
        return _among_others(data)
    if len(plain) < 6:
        return None
    if plain.isprintable():
        return plain
    good = sum(char.isprintable() or char in "\n\t\r" for char in plain)
    return plain if good >= READABLE * len(plain) else _among_others(data)


def _among_others(data: bytes) -> str | None:
    return b"\n".join(_READABLE.findall(data)).decode("ascii") or None


def _wide(data: bytes) -> str | None:
    """Text of two bytes a letter: every other byte is nothing."""
    if data.count(0) < max(1, WIDE * len(data)):
        return None
    pairs = data[: len(data) // 2 * 2]
    if pairs[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return pairs.decode("utf-16")
    return pairs.decode("utf-16-be" if data[0] == 0 else "utf-16-le")


_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}")
_CAPITAL_INSIDE = re.compile("[a-z0-9][A-Z]")
_TOKEN = re.compile(r"\S+")
_GROUP = re.compile(r"[A-Za-z0-9+/_-]{4,}")
_BASE32 = re.compile(r"\b[A-Z2-7]{16,}")
_GAP = r"[ \t,;:\-]{0,2}(?:\r?\n[ \t]{0,8})?"
_HEX = re.compile(rf"(?:\b0[xX]|\\x|\b)[0-9a-fA-F]{{2}}(?:{_GAP}(?:0[xX]|\\x)?[0-9a-fA-F]{{2}}){{7,}}")
_HEX_SIGNS = re.compile(r"0[xX]|\\x|[^0-9a-fA-F]")
_BINARY = re.compile(rf"\b[01]{{7,8}}(?:{_GAP}(?:[01]{{8}}|(?<![01])[01]{{7}}(?![01]))){{3,}}")
_CODES = re.compile(r"\b\d{2,3}(?:[ ,;\t\r\n]{1,3}\d{2,3}){5,}\b")


def byte_codes(text: str) -> Iterator[Decoded]:
    """Base64, base32, hexadecimal, binary and decimal codes."""
    for match in _BASE64.finditer(text):
        if plain := _from_base64(match.group()):
            yield Decoded("base64", plain, match.start(), match.end())
    # Plain words have no capitals inside; only where there are some the words are looked at one by one.
    if len(_CAPITAL_INSIDE.findall(text)) >= FEWEST_CAPITALS:
        yield from _grouped(text)
    for match in _BASE32.finditer(text):
        token = match.group()
        try:
            shown = printable(base64.b32decode(token + "=" * (-len(token) % 8)))
        except (binascii.Error, ValueError):
            continue
        if shown:
            yield Decoded("base32", shown, match.start(), match.end())
    # Letters spelt as numbers take digits, and counting those is cheaper than looking for the numbers.
    if sum(map(text.count, "0123456789")) >= FEWEST_DIGITS:
        yield from _numbers(text)


def _from_base64(token: str) -> str | None:
    token = token.replace("-", "+").replace("_", "/")
    try:
        return printable(base64.b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError):
        return None


def _grouped(text: str) -> Iterator[Decoded]:
    """Base64 cut into groups of the same length, but for the last."""
    groups: list[tuple[int, int]] = []
    for match in _TOKEN.finditer(text):
        start, end = match.start(), match.end() - (text[match.end() - 1] == "=")
        end -= text[end - 1] == "="
        size = groups[0][1] - groups[0][0] if groups else 0
        if not _GROUP.fullmatch(text, start, end) and not (size and end - start < size):
            yield from _joined(text, groups)
            groups = []
        elif not groups or end - start == size:
            groups.append((start, end))
        elif end - start < size:
            yield from _joined(text, groups, (start, end))
            groups = [(start, end)] if end - start >= 4 else []
        else:
            yield from _joined(text, groups)
            groups = [(start, end)]
    yield from _joined(text, groups)


def _joined(
    text: str, groups: list[tuple[int, int]], rest: tuple[int, int] | None = None
) -> Iterator[Decoded]:
    if len(groups) < 2 or (len(groups) == 2 and rest is None):
        return
    # Words before and after may happen to be as long as a group, so the ends are tried with and without.
    for whole in ([*groups, rest] if rest else groups, groups):
        for skipped in range(min(MOST_SKIPPED, len(whole) - 1) + 1):
            code = "".join([text[start:end] for start, end in whole[skipped:]])
            if len(code) >= 16 and (plain := _from_base64(code)):
                yield Decoded("base64 in pieces", plain, whole[skipped][0], whole[-1][1])
                return


def _numbers(text: str) -> Iterator[Decoded]:
    for match in _HEX.finditer(text):
        digits = _HEX_SIGNS.sub("", match.group())
        if plain := printable(bytes.fromhex(digits[: len(digits) // 2 * 2])):
            yield Decoded("hexadecimal", plain, match.start(), match.end())
    for match in _BINARY.finditer(text):
        groups = re.findall("[01]+", match.group())
        if max(map(len, groups)) > 8:
            digits = "".join(groups)
            groups = [digits[at : at + 8] for at in range(0, len(digits) - 7, 8)]
        if plain := printable(bytes([int(group, 2) for group in groups])):
            yield Decoded("binary", plain, match.start(), match.end())
    for match in _CODES.finditer(text):
        codes = [int(code) for code in re.findall(r"\d+", match.group())]
        if plain := printable(bytes([min(code, 255) for code in codes])):
            yield Decoded("character codes", plain, match.start(), match.end())


_PERCENT = re.compile(rf"(?:%[0-9a-fA-F]{{2}}[A-Za-z0-9 +]{{0,40}}){{{FEWEST_PERCENTS},}}")
_PERCENT_CODE = re.compile("%([0-9a-fA-F]{2})")
_LETTERS_BEFORE = re.compile(r"[A-Za-z]{1,12}\Z")
_ESCAPE = r"(?:\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]{1,6}\}|&#[xX][0-9a-fA-F]{1,8};|&#[0-9]{1,10};)"
_ESCAPES = re.compile(rf"(?:{_ESCAPE}[A-Za-z0-9 ]{{0,40}}){{{FEWEST_ESCAPES},}}")
_ESCAPE_CODE = re.compile(r"\\u([0-9a-fA-F]{4})|\\u\{([0-9a-fA-F]+)\}|&#[xX]([0-9a-fA-F]+);|&#([0-9]+);")


def escapes(text: str) -> Iterator[Decoded]:
    """Characters by their numbers, as in addresses, pages and programs."""
    # Counting signs is cheap and most texts have none; the expressions themselves try at every letter.
    if text.count("\\u") + text.count("&#") >= FEWEST_ESCAPES:
        for match in _ESCAPES.finditer(text):
            start, end = _from_its_first_letter(text, match)
            yield Decoded("escaped characters", _ESCAPE_CODE.sub(_character, text[start:end]), start, end)
    if text.count("%") >= FEWEST_PERCENTS:
        for match in _PERCENT.finditer(text):
            start, end = _from_its_first_letter(text, match)
            plain = _PERCENT_CODE.sub(lambda code: chr(int(code[1], 16)), text[start:end])
            yield Decoded("percent encoding", plain.replace("+", " "), start, end)


def _from_its_first_letter(text: str, match: re.Match[str]) -> tuple[int, int]:
    """A run of escapes with the letters before it: they may begin its first word."""
    begun = _LETTERS_BEFORE.search(text, max(0, match.start() - 12), match.start())
    return (begun or match).start(), match.end()


def _character(code: re.Match[str]) -> str:
    number = int(code[4]) if code[4] else int(code[1] or code[2] or code[3], 16)
    return chr(number) if number < 0xD800 or 0xDFFF < number < 0x110000 else ""


_DOTS, _DASHES = ".·•∙", "-−–—_"
_MORSE_SIGN = f"[{re.escape(_DOTS + _DASHES)}]"
_MORSE_RUN = re.compile(
    rf"(?:{_MORSE_SIGN}{{1,6}}(?:[ \t/|]{{1,3}}(?:\r?\n)?|(?:\r?\n){{1,2}})){{5,}}{_MORSE_SIGN}{{0,6}}"
)
_MORSE_WORDS = re.compile(r"\s*[/|\n]\s*|\s{2,}")
_AS_WRITTEN = str.maketrans(dict.fromkeys(_DOTS, ".") | dict.fromkeys(_DASHES, "-"))
_MORSE_SIGNS = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.--"
    " --.. ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----."
)
_MORSE = dict(zip(_MORSE_SIGNS.split(" "), "abcdefghijklmnopqrstuvwxyz0123456789", strict=True))
_BRAILLE = dict(zip("⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵⠀", "abcdefghijklmnopqrstuvwxyz ", strict=True))
_BRAILLE_RUN = re.compile(r"[\u2800-\u28ff][\u2800-\u28ff ]{4,}")


def signals(text: str) -> Iterator[Decoded]:
    """Morse and braille."""
    plain_signs = text.isascii()
    if not plain_signs or sum(map(text.count, ".-_")) >= FEWEST_SIGNALS:
        for match in _MORSE_RUN.finditer(text):
            run = match.group().translate(_AS_WRITTEN).strip().replace("\r", "")
            if " " not in run:  # one letter a line
                run = run.replace("\n\n", "/").replace("\n", " ")
            words = _MORSE_WORDS.split(run)
            plain = " ".join(["".join([_MORSE.get(sign, "") for sign in word.split()]) for word in words])
            if len(plain) >= 5:
                yield Decoded("Morse code", plain, match.start(), match.end())
    if not plain_signs:
        for match in _BRAILLE_RUN.finditer(text):
            plain = "".join([_BRAILLE.get(char, " " if char == " " else "") for char in match.group()])
            yield Decoded("braille", plain, match.start(), match.end())
