"""Which encoding a text file is in when it is not UTF-8, so that the complaint can name it."""

from __future__ import annotations

import codecs
import unicodedata

ENCODING_GLANCE = 65_536
"""Bytes from which a file's encoding is told."""
_CANDIDATES = (
    ("SHIFT_JIS", ("HIRAGANA", "KATAKANA"), 0.2),
    ("EUC-JP", ("HIRAGANA", "KATAKANA"), 0.2),
    ("EUC-KR", ("HANGUL",), 0.7),
    ("BIG5", ("CJK UNIFIED",), 0.7),
    ("GB18030", ("CJK UNIFIED",), 0.6),
    ("WINDOWS-1253", ("GREEK SMALL",), 0.7),
    ("WINDOWS-1251", ("CYRILLIC SMALL",), 0.7),
    ("KOI8-R", ("CYRILLIC SMALL",), 0.7),
    ("WINDOWS-1255", ("HEBREW",), 0.7),
    ("WINDOWS-1256", ("ARABIC",), 0.7),
)
"""Encodings, the letters that texts in them have, and the least share of these beyond ASCII."""
WESTERN = "WINDOWS-1252"
FEW = 0.3
"""Western texts have fewer bytes beyond ASCII among their letters."""
_BIG5_ONLY = frozenset("這個們來說對時會過嗎後點國學問給還讓請無題從將與為於")
"""Common signs that are written differently where GB18030 is used."""


def foreign_encoding(beginning: bytes) -> str | None:
    """The encoding, as iconv calls it, of a text that begins so; None if that is UTF-8."""
    if beginning.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "UTF-32"
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    zeros = [beginning[start::2].count(0) > len(beginning) // 5 for start in (0, 1)]
    if zeros[0] != zeros[1]:
        return "UTF-16BE" if zeros[0] else "UTF-16LE"
    return None if _is_mostly_utf8(beginning) else likely_encoding(beginning)


def _is_mostly_utf8(beginning: bytes) -> bool:
    """Wrong bytes cost their row only; a text of which most lines and signs are wrong is something else."""
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(beginning)
    beyond = [character for character in text if not character.isascii()]
    wrong = sum("\udc80" <= character <= "\udcff" for character in beyond)
    spoilt = sum(any("\udc80" <= character <= "\udcff" for character in line) for line in text.splitlines())
    return spoilt < 2 or 2 * wrong <= len(beyond)


def likely_encoding(beginning: bytes) -> str:
    """Of a text that is not UTF-8: the first encoding whose letters it has, else the western one."""
    letters = sum(chr(byte).isalpha() for byte in beginning if byte < 128)
    beyond = sum(byte >= 128 for byte in beginning)
    if beyond < FEW * (letters + beyond):
        return WESTERN
    return next(
        (name for name, scripts, least in _CANDIDATES if _fits(beginning, name, scripts, least)), WESTERN
    )


def _fits(beginning: bytes, encoding: str, scripts: tuple[str, ...], least: float) -> bool:
    try:
        text = codecs.getincrementaldecoder(encoding)("strict").decode(beginning)
    except UnicodeDecodeError:
        return False
    beyond = [character for character in text if not character.isascii()]
    if encoding == "BIG5" and not _BIG5_ONLY.intersection(beyond):
        return False
    of_script = sum(unicodedata.name(character, "").startswith(scripts) for character in beyond)
    return of_script >= least * len(beyond)


def not_utf8(what: str, encoding: str) -> str:
    """The complaint about a text in another encoding; one that is told by its letters is a guess."""
    if encoding.startswith("UTF"):
        return f"{what} is {encoding}, not UTF-8"
    return f"{what} is not UTF-8, most likely {encoding}"
