"""Ways to write a text so that a reader misses it, undone: each decoder yields plain text and where it stood.

A decoder proposes; whether the plain text says anything is for the lens to judge. Every decoder is linear in
the text and works on bounded stretches, so a hostile input cannot make it slow.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from firecircle.voices.embedded.drawing import drawn_text
from firecircle.voices.embedded.english import reads_as_english

LONGEST = 4_000
"""The longest stretch that is decoded as one."""
MOST = 12
"""How many stretches of one kind are decoded in a layer."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Plain text that was hidden, how, and where its disguise stands; `invisible` if nothing shows at all."""

    method: str
    plain: str
    start: int
    end: int
    invisible: bool = False


def decode(text: str) -> Iterator[Decoded]:
    """Everything that can be read out of a text beside the text itself."""
    for decoder in _DECODERS:
        yield from decoder(text)


def _runs(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    for count, match in enumerate(pattern.finditer(text)):
        if count >= MOST:
            return
        yield match


def _printable(data: bytes) -> str | None:
    try:
        plain = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    good = sum(char.isprintable() or char in "\n\t" for char in plain)
    return plain if len(plain) >= 6 and good >= 0.95 * len(plain) else None


_TAGS = re.compile("[\U000e0020-\U000e007e]{4,4000}")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,4000}")


def _tag_characters(text: str) -> Iterator[Decoded]:
    if text.isascii():
        return
    for match in _runs(_TAGS, text):
        plain = "".join(chr(ord(char) - 0xE0000) for char in match.group())
        yield Decoded("invisible tag characters", plain, match.start(), match.end(), True)
    for match in _runs(_SELECTORS, text):
        data = bytes(
            ord(char) - 0xFE00 if ord(char) < 0xFF00 else ord(char) - 0xE0100 + 16 for char in match.group()
        )
        if shown := _printable(data):
            yield Decoded("invisible variation selectors", shown, match.start(), match.end(), True)


_ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\u2061\u2062\u2063\u2064"
_SPRINKLED = re.compile(rf"(?:[^\n{_ZERO_WIDTH}]{{1,3}}[{_ZERO_WIDTH}]+){{4,1500}}[^\n{_ZERO_WIDTH}]{{0,3}}")
_ANY_ZERO_WIDTH = re.compile(f"[{_ZERO_WIDTH}]")
_REMOVED = {ord(char): None for char in _ZERO_WIDTH}
_ZERO_BITS = re.compile("[\u200b\u200c\u200d\u2060\ufeff]{32,16000}")


def _zero_width(text: str) -> Iterator[Decoded]:
    if text.isascii() or not _ANY_ZERO_WIDTH.search(text):
        return
    for match in _runs(_ZERO_BITS, text):
        if plain := _two_signs(match.group()):
            yield Decoded("zero-width characters read as bits", plain, match.start(), match.end(), True)
    for match in _runs(_SPRINKLED, text):
        yield Decoded("zero-width characters", match.group().translate(_REMOVED), match.start(), match.end())


def _two_signs(run: str) -> str | None:
    """The text that two invisible signs spell as ones and zeros, whichever of them is the one."""
    signs = sorted(set(run))[:2]
    for one in signs:
        bits = "".join("1" if sign == one else "0" for sign in run if sign in signs)
        data = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8))
        if plain := _printable(data):
            return plain
    return None


_BACKWARDS = re.compile("[\u202e\u202d\u2067]([^\u202c\u2069\n]{4,1000})[\u202c\u2069]?")


def _direction(text: str) -> Iterator[Decoded]:
    if text.isascii():
        return
    for match in _runs(_BACKWARDS, text):
        before = text[max(0, match.start() - 60) : match.start()]
        yield Decoded("a reversed direction", before + match.group(1)[::-1], match.start(), match.end())


_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,4000}={0,2}")
_BASE32 = re.compile(r"\b[A-Z2-7]{16,4000}={0,6}")
_HEX = re.compile(r"(?:0x|\\x|\b)[0-9a-fA-F]{2}(?:(?:[ :,]|\\x|0x)?[0-9a-fA-F]{2}){7,1900}")
_BINARY = re.compile(r"\b[01]{7,8}(?:[ ,]?[01]{8}){3,400}\b")
_CODES = re.compile(r"\b\d{2,3}(?:[ ,;]{1,2}\d{2,3}){5,600}\b")
FEWEST_PERCENTS, FEWEST_ESCAPES = 5, 4
_PERCENT = re.compile(
    r"(?:%[0-9a-fA-F]{2}|[A-Za-z0-9 ]){0,3}"
    rf"(?:%[0-9a-fA-F]{{2}}[A-Za-z0-9 ]{{0,12}}){{{FEWEST_PERCENTS},600}}"
)
_ESCAPES = re.compile(rf"(?:\\u[0-9a-fA-F]{{4}}|&#x?[0-9a-fA-F]{{2,5}};){{{FEWEST_ESCAPES},600}}")


def _bytes(text: str) -> Iterator[Decoded]:
    for match in _runs(_BASE64, text):
        token = match.group().rstrip("=").replace("-", "+").replace("_", "/")
        try:
            plain = _printable(base64.b64decode(token + "=" * (-len(token) % 4)))
        except (binascii.Error, ValueError):
            plain = None
        if plain:
            yield Decoded("base64", plain, match.start(), match.end())
    for match in _runs(_BASE32, text):
        token = match.group().rstrip("=")
        try:
            plain = _printable(base64.b32decode(token + "=" * (-len(token) % 8)))
        except (binascii.Error, ValueError):
            plain = None
        if plain:
            yield Decoded("base32", plain, match.start(), match.end())
    for match in _runs(_HEX, text):
        digits = re.sub(r"0x|\\x|[^0-9a-fA-F]", "", match.group())
        if plain := _printable(bytes.fromhex(digits[: len(digits) // 2 * 2])):
            yield Decoded("hexadecimal", plain, match.start(), match.end())
    for match in _runs(_BINARY, text):
        digits = re.sub(r"[^01]", "", match.group())
        if plain := _printable(bytes(int(digits[i : i + 8], 2) for i in range(0, len(digits) - 7, 8))):
            yield Decoded("binary", plain, match.start(), match.end())
    for match in _runs(_CODES, text):
        codes = [int(code) for code in re.findall(r"\d+", match.group())]
        if all(code < 128 for code in codes) and (plain := _printable(bytes(codes))):
            yield Decoded("character codes", plain, match.start(), match.end())


def _escapes(text: str) -> Iterator[Decoded]:
    # Counting signs is cheap and most texts have none; the expressions themselves try at every letter.
    if text.count("\\u") + text.count("&#") >= FEWEST_ESCAPES:
        for match in _runs(_ESCAPES, text):
            codes = re.findall(r"\\u([0-9a-fA-F]{4})|&#x([0-9a-fA-F]+);|&#(\d+);", match.group())
            numbers = [int(u or h, 16) if u or h else int(d) for u, h, d in codes]
            plain = "".join(chr(n) for n in numbers if n < 0xD800)
            yield Decoded("escaped characters", plain, match.start(), match.end())
    if text.count("%") >= FEWEST_PERCENTS:
        for match in _runs(_PERCENT, text):
            plain = re.sub("%([0-9a-fA-F]{2})", lambda m: chr(int(m.group(1), 16)), match.group())
            yield Decoded("percent encoding", plain, match.start(), match.end())


_MORSE_RUN = re.compile(r"(?:[.\-·−–]{1,6}[ /|]{1,3}){5,1200}[.\-·−–]{0,6}")
_MORSE_SIGNS = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.--"
    " --.. ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----."
)
_MORSE = dict(zip(_MORSE_SIGNS.split(" "), "abcdefghijklmnopqrstuvwxyz0123456789", strict=True))
_BRAILLE = dict(zip("⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵⠀", "abcdefghijklmnopqrstuvwxyz ", strict=True))
_BRAILLE_RUN = re.compile(r"[\u2800-\u28ff][\u2800-\u28ff ]{4,2000}")


def _signals(text: str) -> Iterator[Decoded]:
    for match in _runs(_MORSE_RUN, text):
        words = re.split(
            r" ?/ ?| {2,}|\|", match.group().replace("·", ".").replace("−", "-").replace("–", "-")
        )
        plain = " ".join("".join(_MORSE.get(sign, "") for sign in word.split()) for word in words)
        if len(plain) >= 5:
            yield Decoded("morse", plain, match.start(), match.end())
    for match in _runs(_BRAILLE_RUN, text):
        plain = "".join(_BRAILLE.get(char, " " if char == " " else "") for char in match.group())
        yield Decoded("braille", plain, match.start(), match.end())


_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*/\\|+~]{1,3}[^\W_]){5,1500}(?![^\W_])")


def _spaced(text: str) -> Iterator[Decoded]:
    for match in _runs(_SPACED, text):
        run = match.group()
        gaps = sorted(re.findall(r"[^\w]+|_+", run), key=len)
        narrow = gaps[len(gaps) // 2]
        plain = run.replace("   ", "\0").replace("  ", "\0") if narrow == " " else run.replace(" ", "\0")
        yield Decoded(
            "spaced-out letters", plain.replace(narrow, "").replace("\0", " "), match.start(), match.end()
        )


_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһқԛԝӏвнмткгпАВЕКМНОРСТУХІЈЅαορνικτυεβγωΑΒΕΖΗΙΚΜΝΟΡΤΥΧɪɢɴᴏʀᴇᴀʟᴘᴠᴜꜱᴛᴄᴅꜰʜᴊᴋᴍǫᴡʏᴢʙıø",
    "aeopcyxijsdhkqwlbhmtkrnABEKMHOPCTYXIJSaopviktuebywABEZHIKMNOPTYXignorealpvustcdfhjkmqwyzbio",
)


_FOREIGN = re.compile(r"[^\x00-\x7f]")


def _folded(text: str) -> Iterator[Decoded]:
    """Letters that only look like letters: styled alphabets, other scripts, marks above and below."""
    if text.isascii() or len(text) > 200_000:
        return
    odd = [match.start() for match in _FOREIGN.finditer(text) if match.group().isalpha()]
    if not odd:
        return
    plain = unicodedata.normalize("NFKD", text.translate(_LOOKALIKES))
    plain = _FOREIGN.sub(lambda match: "" if unicodedata.combining(match.group()) else match.group(), plain)
    if plain != text and len(plain) - len(_FOREIGN.findall(plain)) > 0.6 * len(plain):
        yield Decoded("look-alike characters", plain, odd[0], odd[-1] + 1)


_LEET = str.maketrans("013457@$!|+8", "oieastasiltb")
_LEET_L = str.maketrans("013457@$!|+8", "oleastasiltb")
_LEET_WORD = re.compile(
    r"(?<!\S)(?=\S{0,30}[a-zA-Z])(?=\S{0,30}(?:[0134578@$|+]|!\w))[a-zA-Z0-9@$!|+]{3,30}(?!\w)"
)
"""A word with a digit or sign in a letter's place; the mark at the end of an exclamation stands for none."""


def _leet(text: str) -> Iterator[Decoded]:
    found = list(_runs(_LEET_WORD, text))
    if len(found) < 2:
        return
    start, end = found[0].start(), min(len(text), found[0].start() + LONGEST)
    stretch = text[start:end]
    for table in (_LEET, _LEET_L) if "1" in stretch else (_LEET,):
        yield Decoded("digits for letters", stretch.translate(table), start, end)


_LINE = re.compile(r"[^\n.!?:]{12,600}")
_LATIN = re.compile("[A-Za-z]+")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_MIRRORED = str.maketrans(_ALPHABET, _ALPHABET[::-1])
_SHIFTED = [str.maketrans(_ALPHABET, _ALPHABET[shift:] + _ALPHABET[:shift]) for shift in range(26)]


def _shifted(text: str) -> Iterator[Decoded]:
    """Lines that are no English as they stand, and are once shifted, mirrored or turned around."""
    tried = 0
    for match in _LINE.finditer(text):
        line = match.group()
        if reads_as_english(line) or sum(map(len, _LATIN.findall(line))) < 0.7 * len(line):
            continue
        tried += 1
        if tried > MOST:
            return
        for method, plain in _readings(line):
            if reads_as_english(plain):
                yield Decoded(method, plain, match.start(), match.end())
                if method != "reversed text":  # else the words may stand in their right order
                    break


def _readings(line: str) -> Iterator[tuple[str, str]]:
    yield "rot13", codecs.encode(line, "rot13")
    yield "reversed text", line[::-1]
    yield "reversed words", " ".join(word[::-1] for word in line.split())
    lower = line.lower()
    yield "a mirrored alphabet", lower.translate(_MIRRORED)
    commonest = max(_ALPHABET, key=lower.count)
    for letter in "etaoin":
        yield "a shifted alphabet", lower.translate(_SHIFTED[(ord(letter) - ord(commonest)) % 26])


def _drawn(text: str) -> Iterator[Decoded]:
    if found := drawn_text(text):
        plain, start, end = found
        yield Decoded("letters drawn large", plain.lower(), start, end)


_DECODERS: tuple[Callable[[str], Iterator[Decoded]], ...] = (
    _tag_characters, _zero_width, _direction, _bytes, _escapes, _signals, _spaced, _folded, _leet, _shifted,
    _drawn,
)  # fmt: skip
