"""Does a quote stand in the prompt? Only words that are found there count as evidence."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

from rapidfuzz import fuzz

from firecircle.evaluation import FoundBy, GroundedQuote, NeutrosophicEvaluation, PatternNote
from firecircle.prompt import Layer, MultiNeutrosophicPrompt

FEWEST_WORDS, FEWEST_CHARS = 2, 8
SIGNS_A_WORD = 2
"""In scripts without spaces a word is about two signs long."""
FUZZY_SCORE = 90.0
FUZZY_LONGEST_LAYER = 50_000
LONGEST_QUOTE = 2_000

_INLINE_QUOTE = re.compile(
    r'"([^"\n]{2,400})"|“([^”\n]{2,400})”|«([^»\n]{2,400})»|`([^`\n]{2,400})`'
    r"|(?<!\w)'([^'\n]{2,400})'(?!\w)|‘([^’\n]{2,400})’"
)
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Signs of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which are written without spaces."""
_ELLIPSIS = re.compile(r"\s*(?:\.\.\.|…|\[\.\.\.\]|\[…\])\s*")


def quotes_of(note: PatternNote) -> tuple[str, ...]:
    """What a voice quoted: its quote, or the passages in quotation marks within its description."""
    if note.quote and note.quote.strip():
        return (note.quote.strip(),)
    return passages_in(note.description)


def passages_in(text: str) -> tuple[str, ...]:
    """The passages that stand in quotation marks within a text."""
    inline = (next(part for part in groups if part) for groups in _INLINE_QUOTE.findall(text))
    return tuple(dict.fromkeys(passage.strip() for passage in inline if passage.strip()))


def ground(
    quote: str, prompt: MultiNeutrosophicPrompt, layer_hint: str | None = None
) -> GroundedQuote | None:
    """Where the quote stands in the prompt, or None. The layer the voice named is searched first."""
    return _ground(quote, prompt.layers, layer_hint)


@lru_cache(maxsize=64)
def _ground(quote: str, layers: tuple[Layer, ...], layer_hint: str | None) -> GroundedQuote | None:
    """Remembered for a while: voices of a circle quote the same words, round after round."""
    layers = tuple(sorted(layers, key=lambda layer: layer.name != layer_hint))
    candidates = [spelling for spelling in _spellings(quote) if _long_enough(spelling)]
    for find in (_find_exact, _find_normalised, _find_fuzzy):
        for candidate, layer in product(candidates, layers):
            if place := find(candidate, layer):
                return place
    return None


def ground_all(
    note: PatternNote, prompt: MultiNeutrosophicPrompt, quoted_by: str
) -> tuple[GroundedQuote, ...]:
    """Every quote of a note that stands in the prompt."""
    places = (ground(quote, prompt, note.layer) for quote in quotes_of(note))
    return tuple(place.model_copy(update={"quoted_by": quoted_by}) for place in places if place)


def grounded_words(evaluation: NeutrosophicEvaluation, prompt: MultiNeutrosophicPrompt) -> tuple[str, ...]:
    """The prompt's own words that an evaluation quotes, in its patterns or its reasoning."""
    quoted = [(quote, note.layer) for note in evaluation.pattern_notes for quote in quotes_of(note)]
    quoted += [(passage, None) for passage in passages_in(evaluation.reasoning)]
    places = (ground(quote, prompt, layer) for quote, layer in quoted)
    return tuple(dict.fromkeys(place.text for place in places if place))


def _spellings(quote: str) -> Sequence[str]:
    """The quote itself, without quotation marks around it, and its parts where the voice left words out."""
    quote = quote[:LONGEST_QUOTE].strip()
    bare = quote.strip("\"'“”‘’«»` \n").strip()
    parts = sorted((part.strip() for part in _ELLIPSIS.split(bare)), key=len, reverse=True)
    return tuple(dict.fromkeys((quote, bare, *(parts if len(parts) > 1 else ()))))


def _long_enough(quote: str) -> bool:
    signs = len(_WITHOUT_SPACES.findall(quote))
    words = len(re.findall(r"\w+", _WITHOUT_SPACES.sub(" ", quote) if signs else quote))
    words += signs // SIGNS_A_WORD
    return words >= FEWEST_WORDS or (words > 0 and len(quote) >= FEWEST_CHARS)


def _place(layer: Layer, start: int, end: int, found_by: FoundBy) -> GroundedQuote:
    return GroundedQuote(
        text=layer.text[start:end], layer=layer.name, start=start, end=end, found_by=found_by
    )


def _find_exact(quote: str, layer: Layer) -> GroundedQuote | None:
    start = layer.text.find(quote)
    return None if start < 0 else _place(layer, start, start + len(quote), "exact")


def _find_normalised(quote: str, layer: Layer) -> GroundedQuote | None:
    needle = _normalised_quote(quote)
    if not _long_enough(needle):
        return None
    text, origin = _normalised_layer(layer.text)
    start = text.find(needle)
    return (
        None if start < 0 else _place(layer, origin[start], origin[start + len(needle) - 1] + 1, "normalised")
    )


def _find_fuzzy(quote: str, layer: Layer) -> GroundedQuote | None:
    """A near match. Short quotes and huge layers are left out: there, nearness says little or costs much."""
    needle = _normalised_quote(quote)
    if len(needle) < 2 * FEWEST_CHARS or len(layer.text) > FUZZY_LONGEST_LAYER:
        return None
    text, origin = _normalised_layer(layer.text)
    if len(text) < len(needle):
        return None
    match = fuzz.partial_ratio_alignment(needle, text, score_cutoff=FUZZY_SCORE)
    if match is None or match.dest_end <= match.dest_start:
        return None
    return _place(layer, origin[match.dest_start], origin[match.dest_end - 1] + 1, "fuzzy")


@lru_cache(maxsize=1024)
def _normalised_quote(quote: str) -> str:
    return _normalised(quote)[0]


@lru_cache(maxsize=8)
def _normalised_layer(text: str) -> tuple[str, array[int]]:
    return _normalised(text)


def _normalised(text: str) -> tuple[str, array[int]]:
    """The text folded in case, space, width, accents and typography, and where each character came from."""
    kept: list[str] = []
    origin = array("I")
    for index, char in enumerate(text):
        folded = char.lower() if char.isascii() else _folded(char)
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


def _folded(char: str) -> str:
    if unicodedata.category(char) == "Cf":
        return ""
    if plain := _TYPOGRAPHY.get(char):
        return plain
    decomposed = unicodedata.normalize("NFKD", char).casefold()
    return "".join(part for part in decomposed if unicodedata.category(part) != "Mn")


_TYPOGRAPHY = {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "‑": "-", "…": "..."}
