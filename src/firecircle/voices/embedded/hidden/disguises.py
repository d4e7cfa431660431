"""Letters in disguise: invisible signs among them, look-alikes for them, another order of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from firecircle.voices.embedded.hidden.decoded import Decoded, stretches
from firecircle.voices.embedded.hidden.encodings import printable
from firecircle.voices.embedded.language.words import word_list

ENGLISH, LATIN, PLAIN = 0.25, 0.7, 0.6
"""The share of common words that makes a line English, of letters that makes it worth shifting, and of ASCII
that makes folded text plain. Set by hand."""
_WORD = re.compile(r"[a-z']+")


def reads_as_english(text: str) -> bool:
    """Whether enough of the words are common ones."""
    words = _WORD.findall(text.lower())
    if len(words) < 3:
        return False
    known = sum(map(_common().__contains__, words))
    return known >= 2 and known >= ENGLISH * len(words)


@cache
def _common() -> frozenset[str]:
    return frozenset(word for word in word_list("common") if len(word) > 1)


_TAGS = re.compile("[\U000e0020-\U000e007e]{4,}")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")


def tag_characters(text: str) -> Iterator[Decoded]:
    """Invisible signs that each stand for a letter or a byte."""
    if text.isascii():
        return
    for match in _TAGS.finditer(text):
        plain = "".join([chr(ord(char) - 0xE0000) for char in match.group()])
        yield Decoded("invisible tag characters", plain, match.start(), match.end(), True)
    for match in _SELECTORS.finditer(text):
        codes = map(ord, match.group())
        data = bytes([code - 0xFE00 if code < 0xFF00 else code - 0xE0100 + 16 for code in codes])
        if shown := printable(data):
            yield Decoded("invisible variation selectors", shown, match.start(), match.end(), True)


_FILLERS = "\u115f\u1160\u3164\uffa0"
"""Letters that nobody sees: they make another word of the one they stand beside."""
_IGNORED = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff" + _FILLERS
)
"""What shows nothing by itself (Unicode calls it default ignorable)."""
_UNSEEN = re.compile(f"[{_IGNORED}]+")
_LETTER = "[A-Za-z0-9\u00c0-\u058f]"
_IN_A_WORD = re.compile(
    f"(?<={_LETTER})(?:[{_IGNORED}]+(?={_LETTER})|[{_FILLERS}])|[{_FILLERS}](?={_LETTER})"
)
"""Only among letters that never need such signs: Persian, Hindi and emoji do."""
_ZERO_BITS = re.compile("[\u200b\u200c\u200d\u2060\ufeff]{32,}")


def zero_width(text: str) -> Iterator[Decoded]:
    """Signs without width, which either spell something or break the words that hold them."""
    if text.isascii() or not _UNSEEN.search(text):
        return
    for match in _ZERO_BITS.finditer(text):
        if plain := _two_signs(match.group()):
            yield Decoded("zero-width characters read as bits", plain, match.start(), match.end(), True)
    for start, end in stretches(text, (match.start() for match in _IN_A_WORD.finditer(text))):
        yield Decoded("zero-width characters", _UNSEEN.sub("", text[start:end]), start, end, spelt=_seen)


def _seen(char: str) -> str:
    return "" if _UNSEEN.match(char) else char


def _two_signs(run: str) -> str | None:
    """The text that two invisible signs spell as ones and zeros, whichever of them is the one."""
    signs = sorted(set(run))[:2]
    for set_bit in signs:
        bits = "".join(["1" if sign == set_bit else "0" for sign in run if sign in signs])
        data = bytes([int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8)])
        if plain := printable(data):
            return plain
    return None


_BACKWARDS = re.compile("[\u202e\u202d\u2067]([^\u202c\u2069\n]{4,1000})[\u202c\u2069]?")


def direction(text: str) -> Iterator[Decoded]:
    """Text that is shown from its end to its beginning."""
    if text.isascii():
        return
    for match in _BACKWARDS.finditer(text):
        before = text[max(0, match.start() - 60) : match.start()]
        yield Decoded("a reversed direction", before + match.group(1)[::-1], match.start(), match.end())


_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*/\\|+~]{1,3}[^\W_]){5,1500}(?![^\W_])")
_GAPS = re.compile(r"[^\w]+|_+")


def spaced(text: str) -> Iterator[Decoded]:
    """Letters with something between each and the next."""
    for match in _SPACED.finditer(text):
        run = match.group()
        gaps = sorted(_GAPS.findall(run), key=len)
        narrow = gaps[len(gaps) // 2]
        plain = run.replace("   ", "\0").replace("  ", "\0") if narrow == " " else run.replace(" ", "\0")
        yield Decoded(
            "spaced-out letters", plain.replace(narrow, "").replace("\0", " "), match.start(), match.end()
        )


_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһқԛԝӏвнмткгпАВЕКМНОРСТУХІЈЅαορνικτυεβγωΑΒΕΖΗΙΚΜΝΟΡΤΥΧɪɢɴᴏʀᴇᴀʟᴘᴠᴜꜱᴛᴄᴅꜰʜᴊᴋᴍǫᴡʏᴢʙıø",
    "aeopcyxijsdhkqwlbhmtkrnABEKMHOPCTYXIJSaopviktuebywABEZHIKMNOPTYXignorealpvustcdfhjkmqwyzbio",
)
_DARK = (0x1F150, 0x1F170, 0x1F1E6)
"""Where the letters on dark circles, dark squares and flags begin; Unicode does not tell which is which."""
_FOREIGN = re.compile(r"[^\x00-\x7f]")


@lru_cache(maxsize=20_000)
def _folded(char: str) -> str:
    """The plain letter that a sign looks like, else the sign itself; nothing for a mark on a letter."""
    if char.isascii():
        return char
    if _UNSEEN.match(char):
        return ""
    for first in _DARK:
        if first <= ord(char) < first + 26:
            return chr(ord(char) - first + ord("A"))
    parts = unicodedata.normalize("NFKD", char.translate(_LOOKALIKES))
    plain = "".join([part for part in parts if not unicodedata.combining(part)]).translate(_LOOKALIKES)
    return plain[1] if len(plain) == 3 and plain[0] == "(" and plain[1].isalpha() else plain


def lookalikes(text: str) -> Iterator[Decoded]:
    """Letters that only look like letters: styled alphabets, other scripts, marks above and below."""
    if text.isascii():
        return
    for start, end in stretches(text, _odd_letters(text)):
        stretch = text[start:end]
        plain = _FOREIGN.sub(lambda match: _folded(match.group()), stretch)
        if plain != stretch and len(plain) - len(_FOREIGN.findall(plain)) > PLAIN * len(plain):
            yield Decoded("look-alike characters", plain, start, end, spelt=_folded)


def _odd_letters(text: str) -> Iterator[int]:
    for match in _FOREIGN.finditer(text):
        if _stands_for_a_letter(match.group()):
            yield match.start()


@lru_cache(maxsize=20_000)
def _stands_for_a_letter(char: str) -> bool:
    plain = _folded(char)
    return plain.isascii() and (plain.isalpha() or (not plain and unicodedata.combining(char) > 0))


_LEET = str.maketrans("013457@$!|+8", "oieastasiltb")
_LEET_L = str.maketrans("013457@$!|+8", "oleastasiltb")
_LEET_WORD = re.compile(
    r"(?<!\S)(?=\S{0,30}[a-zA-Z])(?=\S{0,30}(?:[0134578@$|+]|!\w))[a-zA-Z0-9@$!|+]{3,30}(?!\w)"
)
"""A word with a digit or sign in a letter's place; the mark at the end of an exclamation stands for none."""


def leet(text: str) -> Iterator[Decoded]:
    """Digits and signs in the place of letters, in two words at least."""
    words = [match.start() for match in _LEET_WORD.finditer(text)]
    if len(words) < 2:
        return
    for start, end in stretches(text, words):
        stretch = text[start:end]
        for table in (_LEET, _LEET_L) if "1" in stretch else (_LEET,):
            yield Decoded("digits for letters", stretch.translate(table), start, end, spelt=_itself)


def _itself(char: str) -> str:
    return char


_LINE = re.compile(r"[^\n.!?:]{12,600}")
_LATIN = re.compile("[A-Za-z]+")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_MIRRORED = str.maketrans(_ALPHABET, _ALPHABET[::-1])
_SHIFTED = [str.maketrans(_ALPHABET, _ALPHABET[shift:] + _ALPHABET[:shift]) for shift in range(26)]
_FROM_A = {letter: _SHIFTED[-number % 26] for number, letter in enumerate(_ALPHABET)}


def shifted(text: str) -> Iterator[Decoded]:
    """Lines that are no English as they stand, and are once shifted, mirrored or turned around."""
    for match in _LINE.finditer(text):
        line = match.group()
        if reads_as_english(line) or sum(map(len, _LATIN.findall(line))) < LATIN * len(line):
            continue
        for method, plain, spelt in _readings(line.lower()):
            if reads_as_english(plain):
                yield Decoded(method, plain, match.start(), match.end(), spelt=spelt)


def _readings(line: str) -> Iterator[tuple[str, str, Callable[[str], str] | None]]:
    if shift := _likeliest_shift(line):
        yield "rot13" if shift == 13 else "a shifted alphabet", line.translate(_SHIFTED[shift]), _itself
    yield "reversed text", line[::-1], None
    yield "reversed words", " ".join([word[::-1] for word in line.split()]), None
    yield "a mirrored alphabet", line.translate(_MIRRORED), _itself


def _likeliest_shift(line: str) -> int:
    """The shift of the alphabet that makes common words of the most words; 0 if none does.

    A shift keeps the distances between letters, so each word is looked up once, moved until it begins with a.
    """
    votes = [0] * 26
    known = _common_from_a()
    for word in _LATIN.findall(line):
        for first in known.get(word.translate(_FROM_A[word[0]]), ""):
            votes[(ord(first) - ord(word[0])) % 26] += 1
    best = max(votes)
    return votes.index(best) if best > 1 else 0


@cache
def _common_from_a() -> dict[str, str]:
    """The first letters of common words, by what is left of a word once it is moved to begin with a."""
    known: dict[str, str] = {}
    for word in sorted(word for word in word_list("common") if len(word) > 1):
        moved = word.translate(_FROM_A[word[0]])
        known[moved] = known.get(moved, "") + word[0]
    return known
