"""The prompt as evidence between markers, and quotes: only words that are found in it count."""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count, islice, product
from typing import Literal

from rapidfuzz import fuzz

from firecircle.circle.voice import PeerQuote
from firecircle.evaluation import FoundBy, GroundedQuote, NeutrosophicEvaluation, PatternNote
from firecircle.prompt import Layer, MultiNeutrosophicPrompt

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


FEWEST_WORDS, FEWEST_CHARS = 2, 8
FEWEST_CODES = 3
"""Groups of dots and dashes that are long enough to be words."""
FEWEST_WORDS_OF_A_QUOTE = 4
"""In a reasoning; fewer words in quotation marks may be a term."""
NOT_IN_EVIDENCE = "not in the evidence"
SIGNS_A_WORD = 2
"""In scripts without spaces a word has about two characters."""
FUZZY_SCORE = 90.0
FUZZY_LONGEST_LAYER = 50_000
FUZZY_LONGEST_QUOTE = 1_000
FUZZY_MOST_WORK = 1_000_000_000
"""The limit of `_work` on near matches for the quotes of one evaluation: at worst a second, usually a tenth
of that. Without it, hundreds of passages that are almost in the prompt would block all voices.
"""
LONGEST_QUOTE = 2_000
MOST_QUOTES = 100
"""Passages of one evaluation that are searched."""
MOST_PARTS = 8
LONGEST_DESCRIPTION = 20_000
"""Length of a text that is searched for passages in quotation marks."""
LONGEST_WORD = 64
"""Characters by which a quote that cuts a word is extended; longer runs, such as encoded data, stay cut."""
MOST_PLACES = 100
"""Places of a quote that are checked for one that cuts no word."""

_INLINE_QUOTE = re.compile(
    r'"([^"\n]{2,400}+)"|“([^”\n]{2,400}+)”|«([^»\n]{2,400}+)»|`([^`\n]{2,400}+)`'
    r"|(?<!\w)'([^'\n]{2,400}+)'(?!\w)|‘([^’\n]{2,400}+)’"
)
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese characters, which are written without spaces."""
_APOSTROPHES = ("'", "’")
_ELLIPSIS = re.compile(r"\s*(?:\.\.\.|…|\[\.\.\.\]|\[…\])\s*")


def quotes_of(note: PatternNote) -> tuple[str, ...]:
    """A voice's quotes: its quote, or the passages in quotation marks within its description."""
    if note.quote and note.quote.strip():
        return (note.quote.strip(),)
    return passages_in(note.description)


def passages_in(text: str) -> tuple[str, ...]:
    """The passages in quotation marks within a text."""
    inline = (
        next(part for part in groups if part) for groups in _INLINE_QUOTE.findall(text[:LONGEST_DESCRIPTION])
    )
    return tuple(dict.fromkeys(passage.strip() for passage in inline if passage.strip()))


def with_invented_marked(text: str, prompt: MultiNeutrosophicPrompt) -> str:
    """The text with a note after every passage in quotation marks that is not in the prompt."""
    found = [
        (passage, next(part for part in passage.groups() if part))
        for passage in islice(_INLINE_QUOTE.finditer(text), MOST_QUOTES)
    ]
    quoted = [(passage, words) for passage, words in found if len(words.split()) >= FEWEST_WORDS_OF_A_QUOTE]
    places = _ground_all(((words, None) for _, words in quoted), prompt)
    for (passage, _), place in reversed([*zip(quoted, places, strict=True)]):
        if place is None:
            text = f"{text[: passage.end()]} [{NOT_IN_EVIDENCE}]{text[passage.end() :]}"
    return text


def ground(
    quote: str, prompt: MultiNeutrosophicPrompt, layer_hint: str | None = None
) -> GroundedQuote | None:
    """The place of the quote in the prompt, or None. The layer that the voice named is searched first."""
    return next(_ground_all([(quote, layer_hint)], prompt))


def _ground_all(
    quotes: Iterable[tuple[str, str | None]], prompt: MultiNeutrosophicPrompt
) -> Iterator[GroundedQuote | None]:
    """The place of each quote of one evaluation; near matches within the limit of work."""
    work = 0
    for quote, layer_hint in islice(quotes, MOST_QUOTES):
        place = _find_literal(quote, prompt.layers, layer_hint)
        if place is None and work < FUZZY_MOST_WORK:
            place, done = _find_near(quote, prompt.layers, layer_hint)
            work += done
        yield place


@lru_cache(maxsize=64)
def _find_literal(quote: str, layers: tuple[Layer, ...], layer_hint: str | None) -> GroundedQuote | None:
    """Cached: voices of a circle quote the same words, round after round."""
    pairs = _pairs(quote, layers, layer_hint)
    for find in (_find_exact, _find_normalised):
        for candidate, layer in pairs:
            if place := find(candidate, layer):
                return place
    return None


@lru_cache(maxsize=64)
def _find_near(
    quote: str, layers: tuple[Layer, ...], layer_hint: str | None
) -> tuple[GroundedQuote | None, int]:
    """A near match, and the work of the search."""
    work = 0
    for candidate, layer in _pairs(quote, layers, layer_hint):
        if work >= FUZZY_MOST_WORK:
            break
        needle = _normalised_quote(candidate)[:FUZZY_LONGEST_QUOTE]
        if len(needle) < 2 * FEWEST_CHARS or len(layer.text) > FUZZY_LONGEST_LAYER:
            continue  # here, nearness says little or costs much
        work += _work(needle, layer)
        if place := _find_fuzzy(needle, layer):
            return place, work
    return None, work


def _pairs(quote: str, layers: tuple[Layer, ...], layer_hint: str | None) -> list[tuple[str, Layer]]:
    """Each spelling with each layer, starting with the layer that the voice named."""
    in_order = sorted(layers, key=lambda layer: layer.name != layer_hint)
    return list(product(filter(_long_enough, _spellings(quote)), in_order))


def _work(needle: str, layer: Layer) -> int:
    """The work of a search for a near match: machine words of the layer, times places."""
    return len(needle) * len(layer.text) * (1 + len(needle) // 64)


def ground_notes(
    evaluation: NeutrosophicEvaluation, prompt: MultiNeutrosophicPrompt
) -> tuple[tuple[GroundedQuote, ...], ...]:
    """For each note of an evaluation, every quote of it that is in the prompt."""
    notes = [(quotes_of(note), note.layer) for note in evaluation.pattern_notes]
    places = _ground_all(((quote, layer) for quotes, layer in notes for quote in quotes), prompt)
    return tuple(
        tuple(
            place.model_copy(update={"quoted_by": evaluation.model})
            for place in islice(places, len(quotes))
            if place
        )
        for quotes, _ in notes
    )


def grounded_in_reasoning(
    evaluation: NeutrosophicEvaluation, prompt: MultiNeutrosophicPrompt
) -> tuple[GroundedQuote, ...]:
    """The quotes within an evaluation's reasoning that are in the prompt."""
    quotes = [(passage, None) for passage in passages_in(evaluation.reasoning)]
    return tuple(
        place.model_copy(update={"quoted_by": evaluation.model})
        for place in _ground_all(quotes, prompt)
        if place
    )


def peer_quotes(evaluation: NeutrosophicEvaluation, prompt: MultiNeutrosophicPrompt) -> tuple[PeerQuote, ...]:
    """The prompt's own words that an evaluation quotes: first in its patterns, then in its reasoning."""
    notes = zip(evaluation.pattern_notes, ground_notes(evaluation, prompt), strict=True)
    quotes = [
        PeerQuote(note.type, place.layer, place.start, place.end) for note, of_it in notes for place in of_it
    ]
    known = {(quote.layer, quote.start, quote.end) for quote in quotes}
    quotes += [
        PeerQuote(None, place.layer, place.start, place.end)
        for place in grounded_in_reasoning(evaluation, prompt)
        if (place.layer, place.start, place.end) not in known
    ]
    return tuple(dict.fromkeys(quotes))


def overlap(one: GroundedQuote, other: GroundedQuote) -> bool:
    """Whether two quotes share at least half of the shorter one."""
    if one.layer != other.layer:
        return False
    shared = min(one.end, other.end) - max(one.start, other.start)
    return shared > 0 and 2 * shared >= min(one.end - one.start, other.end - other.start)


def _spellings(quote: str) -> Sequence[str]:
    """The quote without quotation marks around it, and its parts if the voice left words out."""
    quote = quote[:LONGEST_QUOTE].strip()
    bare = quote.strip("\"'“”‘’«»` \n").strip()
    parts = sorted((part.strip() for part in _ELLIPSIS.split(bare)), key=len, reverse=True)
    return tuple(dict.fromkeys((quote, bare, *(parts[:MOST_PARTS] if len(parts) > 1 else ()))))


def _long_enough(quote: str) -> bool:
    signs = len(_WITHOUT_SPACES.findall(quote))
    words = len(re.findall(r"\w+", _WITHOUT_SPACES.sub(" ", quote) if signs else quote))
    words += signs // SIGNS_A_WORD
    if not words:  # Morse code, pictures, signs that do not show; no rule that is drawn, no row of marks
        drawn = "".join(quote.split())
        coded = not drawn.isascii() or len(quote.split()) >= FEWEST_CODES
        return coded and len(drawn) >= FEWEST_CHARS and len(set(drawn)) > 1
    return words >= FEWEST_WORDS or len(quote) >= FEWEST_CHARS


def _place(layer: Layer, start: int, end: int, found_by: FoundBy) -> GroundedQuote:
    start, end = _word_edge(layer.text, start, -1), _word_edge(layer.text, end, 1)
    return GroundedQuote.assembled(
        text=layer.text[start:end], layer=layer.name, start=start, end=end, found_by=found_by, quoted_by=""
    )


def _word_edge(text: str, at: int, step: Literal[-1, 1]) -> int:
    """The end of the word that a quote cuts there, in the direction of the step."""
    edge = at
    while _is_within_word(text, edge):
        edge += step
        if abs(edge - at) > LONGEST_WORD:
            return at
    return edge


def _is_within_word(text: str, at: int) -> bool:
    """Whether the characters on both sides of a place belong to one word; `don't` is one."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if after in _APOSTROPHES:
        after = text[at + 1 : at + 2]
    elif before in _APOSTROPHES:
        before = text[max(0, at - 2) : at - 1]
    return _is_of_word(before) and _is_of_word(after)


def _is_of_word(char: str) -> bool:
    if _WITHOUT_SPACES.match(char):
        return False
    return char.isalnum() or char == "_" or (char != "" and unicodedata.category(char) in ("Mn", "Mc", "Cf"))


def _find(needle: str, text: str) -> int:
    """The position of the needle, if possible without cutting a word; -1 if it is not there."""
    first = start = text.find(needle)
    for _ in range(MOST_PLACES):
        if start < 0 or not (_is_within_word(text, start) or _is_within_word(text, start + len(needle))):
            break
        start = text.find(needle, start + 1)
    else:
        return first
    return first if start < 0 else start


def _find_exact(quote: str, layer: Layer) -> GroundedQuote | None:
    start = _find(quote, layer.text)
    return None if start < 0 else _place(layer, start, start + len(quote), "exact")


def _find_normalised(quote: str, layer: Layer) -> GroundedQuote | None:
    needle = _normalised_quote(quote)
    if not _long_enough(needle):
        return None
    text, origin = _normalised_layer(layer.text)
    start = _find(needle, text)
    return (
        None if start < 0 else _place(layer, origin[start], origin[start + len(needle) - 1] + 1, "normalised")
    )


def _find_fuzzy(needle: str, layer: Layer) -> GroundedQuote | None:
    text, origin = _normalised_layer(layer.text)
    if len(text) < len(needle):
        return None
    match = fuzz.partial_ratio_alignment(needle, text, score_cutoff=FUZZY_SCORE)
    if match is None or match.dest_end <= match.dest_start:
        return None
    return _place(layer, origin[match.dest_start], origin[match.dest_end - 1] + 1, "fuzzy")


@lru_cache(maxsize=1024)
def _normalised_quote(quote: str) -> str:
    return _normalise(quote)[0]


@lru_cache(maxsize=8)
def _normalised_layer(text: str) -> tuple[str, array[int]]:
    return _normalise(text)


def _normalise(text: str) -> tuple[str, array[int]]:
    """The text folded in case, space, width, accents and typography, and the origin of each character."""
    kept: list[str] = []
    origin = array("I")
    for index, char in enumerate(text):
        folded = char.lower() if char.isascii() else _fold(char)
        for part in folded:
            if part.isspace():
                if kept and kept[-1] != " ":
                    kept.append(" ")
                    origin.append(index)
            else:
                kept.append(part)
                origin.append(index)
    while kept and kept[-1] == " ":
        kept.pop()
        origin.pop()
    return "".join(kept), origin


def _fold(char: str) -> str:
    if unicodedata.category(char) == "Cf":
        return ""
    if plain := _TYPOGRAPHY.get(char):
        return plain
    decomposed = unicodedata.normalize("NFKD", char).casefold()
    return "".join(part for part in decomposed if unicodedata.category(part) != "Mn")


_TYPOGRAPHY = {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "‑": "-", "…": "..."}
