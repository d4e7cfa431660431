"""Search the bank: by type, tag and words, by likeness and by relevance."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from heapq import nlargest
from importlib import resources
from math import log, prod, sqrt
from statistics import fmean
from typing import NamedTuple

import sqlalchemy as sa
from rapidfuzz import fuzz
from rapidfuzz.distance import OSA
from sqlalchemy.engine import Connection, RowMapping

from firecircle.circle.pattern_types import known_types
from firecircle.errors import ConfigError
from firecircle.store.bank.entries import BankEntry, BankFilters, FullEntry, Sighting
from firecircle.store.tables import bank_entries, bank_sightings, bank_tags

SHORTEST_PREFIX = 4
_SHOWN = tuple(bank_entries.c[name] for name in BankEntry.model_fields)


def find_entries(connection: Connection, filters: BankFilters, limit: int | None = None) -> list[BankEntry]:
    """The matching entries, most often seen first."""
    query = sa.select(*_SHOWN).where(*_conditions(filters))
    query = query.order_by(bank_entries.c.sightings.desc(), bank_entries.c.pk).limit(limit)
    return [BankEntry(**row) for row in connection.execute(query).mappings()]


def find_entry(connection: Connection, id_or_prefix: str) -> BankEntry:
    """The entry with this id or unique id prefix."""
    matches = bank_entries.c.id == id_or_prefix
    if len(id_or_prefix) >= SHORTEST_PREFIX:
        matches = sa.or_(matches, bank_entries.c.id.startswith(id_or_prefix, autoescape=True))
    rows = connection.execute(sa.select(*_SHOWN).where(matches).limit(2)).mappings().all()
    if not rows:
        raise ConfigError(
            id_or_prefix or "ID", "no such entry", "`firecircle bank list` shows what is in the bank"
        )
    if len(rows) > 1:
        raise ConfigError(id_or_prefix, "several entries begin so", "give more of the id")
    return BankEntry(**rows[0])


def seen_in_circle(connection: Connection, id_or_prefix: str) -> str:
    """The id of the only circle in the bank with this prefix; the prefix itself if there is none."""
    of = bank_sightings.c.circle_id
    if (
        len(id_or_prefix) < SHORTEST_PREFIX
        or connection.execute(sa.select(of).where(of == id_or_prefix).limit(1)).first()
    ):
        return id_or_prefix
    begins = sa.select(of).where(of.startswith(id_or_prefix, autoescape=True)).distinct().limit(2)
    circle_ids = connection.execute(begins).scalars().all()
    if len(circle_ids) > 1:
        raise ConfigError(id_or_prefix, "several circles begin so", "give more of the id")
    return circle_ids[0] if circle_ids else id_or_prefix


def full_entry(connection: Connection, entry: BankEntry) -> FullEntry:
    """The entry with every sighting, latest first."""
    of = bank_sightings.c
    query = sa.select(bank_sightings).join(bank_entries).where(bank_entries.c.id == entry.id)
    rows = connection.execute(query.order_by(of.at.desc(), of.pk.desc())).mappings().all()
    tags = _tags(connection, [row["pk"] for row in rows])
    seen = tuple(_sighting(row, tags.get(row["pk"], ())) for row in rows)
    return FullEntry(**entry.model_dump(), seen=seen)


def latest_words(connection: Connection, filters: BankFilters, most: int) -> Iterator[tuple[str, str]]:
    """For each matching entry, the folded words of its latest sightings, latest first."""
    of = bank_sightings.c
    place = sa.func.row_number().over(partition_by=of.entry_pk, order_by=(of.at.desc(), of.pk.desc()))
    ranked = (
        sa.select(bank_entries.c.id, of.words, place.label("place"))
        .join(bank_entries)
        .where(*_conditions(filters))
        .subquery()
    )
    query = sa.select(ranked.c.id, ranked.c.words).where(ranked.c.place <= most).order_by(ranked.c.place)
    for row in connection.execute(query):
        yield row.id, row.words


def _conditions(filters: BankFilters) -> list[sa.ColumnElement[bool]]:
    seen = bank_sightings.alias("seen")  # separate from the sightings that a query may list
    of = seen.c
    mine = of.entry_pk == bank_entries.c.pk
    clauses: list[sa.ColumnElement[bool]] = []
    if filters.pattern_type is not None:
        clauses.append(bank_entries.c.pattern_type == filters.pattern_type)
    if filters.tag is not None:
        tagged = sa.and_(bank_tags.c.sighting_pk == of.pk, bank_tags.c.tag == filters.tag)
        clauses.append(sa.exists().where(mine, tagged))
    if filters.text is not None:
        words = filters.text.casefold().split()
        if not words:
            raise ConfigError("text", "needs a word to search for")
        clauses.append(sa.exists().where(mine, *(of.words.contains(word, autoescape=True) for word in words)))
    return clauses


def _tags(connection: Connection, sightings: Sequence[int]) -> dict[int, tuple[str, ...]]:
    by_sighting: dict[int, list[str]] = {}
    query = sa.select(bank_tags).order_by(bank_tags.c.tag)
    for start in range(0, len(sightings), 500):
        some = query.where(bank_tags.c.sighting_pk.in_(sightings[start : start + 500]))
        for pk, tag in connection.execute(some):
            by_sighting.setdefault(pk, []).append(tag)
    return {pk: tuple(tags) for pk, tags in by_sighting.items()}


def _sighting(row: RowMapping, tags: Sequence[str]) -> Sighting:
    return Sighting(
        attack_id=row["attack_id"],
        circle_id=row["circle_id"],
        at=row["at"],
        agreement=row["agreement"],
        description=row["description"],
        models=tuple(row["models"].split("\n")) if row["models"] else (),
        layers=tuple(row["layers"].split("\n")) if row["layers"] else (),
        examples=tuple(json.loads(row["examples"])),
        tags=tuple(tags),
    )


# How alike two descriptions are in meaning: shared words, and shared concepts behind the other words

SAME_MEANING = 0.44
"""Likeness at which two descriptions of one pattern type are one entry."""
TELLING, COMMON, WORD, OF_THE_TYPE = 2.0, 0.5, 0.7, 0.25
"""Weights: a concept that distinguishes patterns, a common one, a word, and what the whole type shares."""
UNSAID = 2.0
"""The weight, squared, of what a description is assumed to leave unsaid."""
SHARE_OF_MEANING = 0.75
"""The rest is likeness letter by letter, which catches inflections and names."""
REMEMBERED = 4096
"""Size of the cache of analysed descriptions and words."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_PEER = re.compile(r"\bEvaluators? [A-J]\b|\b(?:read|points at the) (?:again|same words)\b")
_ENDINGS = ("ations", "ation", "ings", "ing", "ions", "ion", "edly", "ies", "ed", "es", "ly", "s")
SHORTEST_STEM = 4

Terms = Mapping[str, float]
"""The terms of a text, each with its weight."""


def likeness(first_text: str, second_text: str, pattern_type: str = "") -> float:
    """How alike two descriptions of a pattern of this type are in meaning, from 0 to 1."""
    first, second = _plain(first_text, pattern_type), _plain(second_text, pattern_type)
    if first == second:
        return 1.0
    meaning = _cosine(_within_type(first, pattern_type), _within_type(second, pattern_type))
    letters = fuzz.token_sort_ratio(first, second) / 100
    return SHARE_OF_MEANING * meaning + (1 - SHARE_OF_MEANING) * letters


def terms_of(text: str) -> Terms:
    """The concepts and remaining words of a text, without small words."""
    weights: dict[str, float] = {}
    for word in words_of(text):
        concepts = _concepts_of(word)
        weights.update(concepts)
        if not concepts:
            weights[stem_of(word)] = WORD
    return weights


@lru_cache(maxsize=REMEMBERED)
def _within_type(text: str, pattern_type: str) -> Terms:
    """The terms of a text, with little weight for what every pattern of the type shares."""
    usual = _concepts().of_the_type.get(pattern_type, frozenset())
    return {
        term: min(weight, OF_THE_TYPE) if term in usual else weight for term, weight in terms_of(text).items()
    }


def words_of(text: str) -> Iterable[str]:
    """The words with meaning, folded."""
    small = _concepts().small
    return (word for word in _WORD.findall(text.casefold()) if word not in small)


def stem_of(word: str) -> str:
    """The word without a common ending."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def known_words() -> Iterable[str]:
    """Words and word beginnings that have a meaning here, and small words."""
    known = _concepts()
    return (*known.small, *known.whole, *(beginning for beginning, _, _ in known.beginnings))


@lru_cache(maxsize=REMEMBERED)
def _plain(text: str, pattern_type: str) -> str:
    """The description without its type's name and peers' labels, which differ by circle."""
    plain = " ".join(_PEER.sub(" ", text).casefold().replace("_", " ").replace("-", " ").split())
    return plain.replace(pattern_type.replace("_", " "), " ") if pattern_type else plain


def _cosine(first: Terms, second: Terms) -> float:
    """The cosine of two bags of terms; a single shared term of two short texts counts little."""
    both = [(weight, second[term]) for term, weight in first.items() if term in second]
    if not any(weight >= WORD for weight, _ in both):
        return 0.0  # they share only what most descriptions say
    shared = sum(weight * same for weight, same in both)
    lengths = (UNSAID + weight * weight for weight in (_length(first), _length(second)))
    return shared / sqrt(prod(lengths))


def _length(terms: Terms) -> float:
    return sqrt(sum(weight * weight for weight in terms.values()))


class _Concepts(NamedTuple):
    small: frozenset[str]
    whole: Mapping[str, Terms]
    beginnings: Sequence[tuple[str, str, float]]
    of_the_type: Mapping[str, frozenset[str]]


@cache
def _concepts() -> _Concepts:
    """Words and word beginnings with their concepts, and the concepts of each type."""
    place = resources.files("firecircle.store.bank").joinpath("concepts.toml")
    tables = tomllib.loads(place.read_text("utf-8"))
    whole: dict[str, dict[str, float]] = {}
    beginnings: list[tuple[str, str, float]] = []
    for table, weight in (("common", COMMON), ("telling", TELLING)):
        for concept, words in tables[table].items():
            for word in words:
                if word.endswith("*"):
                    beginnings.append((word[:-1], f"={concept}", weight))
                else:
                    whole.setdefault(word, {})[f"={concept}"] = weight
    of_the_type = {
        kind.value: frozenset(f"={name}" for name in known.concepts) for kind, known in known_types().items()
    }
    return _Concepts(frozenset(tables["small"].split()), whole, beginnings, of_the_type)


@lru_cache(maxsize=REMEMBERED)
def _concepts_of(word: str) -> Terms:
    known = _concepts()
    begun = {concept: weight for beginning, concept, weight in known.beginnings if word.startswith(beginning)}
    return {**known.whole.get(word, {}), **begun}


# How relevant an entry is to a question, from 0 to 1: by words, concepts and, if available, meaning

Meaning = Callable[[str, Sequence[str]], Sequence[float]]
"""Maps a question and texts to the nearness of each text in meaning, at most 1."""

SATURATION, LENGTH = 1.2, 0.75
"""The usual BM25 constants: how fast repetition saturates, and how much a long entry is discounted."""
LONGEST_QUESTION = 50_000
"""Characters read of a prompt: half from its beginning and half from its end."""
LONGEST_SIGHTING = 4_000
"""Characters read of a sighting's description and quotes."""
COMPARED = 8
"""Latest descriptions and quotes of an entry that are compared by meaning."""
NEAREST = 2
"""An entry's nearness is the mean of this many nearest texts."""
UNRELATED = 0.25
"""Nearness of any two texts of this subject."""
LONGEST_TYPED = 400
"""Longest question, in characters, that counts as typed and may contain typos."""
SHORTEST_MISTYPED, LONG_WORD = 6, 9
"""Letters of a word that may have one typo, and of one that may have two."""
SHORTEST_WORD = 5
"""Shorter words resemble too many others."""
LONG = 3_000
"""A question of this many characters is a long text that may bury something."""


def relevance(
    question: str, entries: Iterable[tuple[str, str]], meaning: Meaning | None = None
) -> Mapping[str, float]:
    """The relevance of each entry that has anything in common with the question.

    `entries` are ids with the words of a sighting (its description, then one quote per line), latest first.
    """
    asked = asked_terms(_correct_typos(question) if len(question) <= LONGEST_TYPED else _shorten(question))
    bags: dict[str, Counter[str]] = {}
    texts: dict[str, dict[str, None]] = {}
    for entry_id, words in entries:
        bags.setdefault(entry_id, Counter()).update(_terms_of_sighting(words[:LONGEST_SIGHTING]))
        lines = words[:LONGEST_SIGHTING].splitlines()
        texts.setdefault(entry_id, {}).update((line, None) for line in lines if line.strip())
    shares = _shares(asked, bags)
    if meaning is None or not bags:
        return {entry_id: share for entry_id, share in shares.items() if share > 0}
    near = _nearness(question, texts, meaning)
    return {
        entry_id: (share + near[entry_id]) / 2
        for entry_id, share in shares.items()
        if share > 0 or near[entry_id] > 0
    }


def _shares(asked: Mapping[str, float], bags: Mapping[str, Counter[str]]) -> dict[str, float]:
    usual = sum(bag.total() for bag in bags.values()) / (len(bags) or 1) or 1.0
    holders = Counter(term for bag in bags.values() for term in bag)
    rarity = {term: log(1 + (len(bags) - holders[term] + 0.5) / (holders[term] + 0.5)) for term in asked}
    most = sum(weight * rarity[term] for term, weight in asked.items())
    shares: dict[str, float] = {}
    for entry_id, bag in bags.items():
        room = SATURATION * (1 - LENGTH + LENGTH * bag.total() / usual)
        shared = sum(
            weight * rarity[term] * bag[term] / (bag[term] + room)
            for term, weight in asked.items()
            if term in bag
        )
        shares[entry_id] = shared / most if most else 0.0
    return shares


def _nearness(question: str, texts: Mapping[str, Iterable[str]], meaning: Meaning) -> dict[str, float]:
    compared = {entry_id: list(of)[:COMPARED] for entry_id, of in texts.items()}
    every = [text for of in compared.values() for text in of]
    nearness = dict(zip(every, meaning(question, every), strict=True))
    return {
        entry_id: max(0.0, fmean(nlargest(NEAREST, (nearness[text] for text in of)) or [0.0]) - UNRELATED)
        / (1 - UNRELATED)
        for entry_id, of in compared.items()
    }


def asked_terms(text: str) -> Mapping[str, float]:
    """The terms of a question or quote: words, concepts, and those behind its phrases and visible signs."""
    spoken = {f"={name}": TELLING for name in _spoken_concepts(text)}
    return {**terms_of(text), **spoken}


def _correct_typos(question: str) -> str:
    """The question, followed by the known words that its unknown ones are likely to mean."""
    meant = [_likely_word(word) or word for word in question.casefold().split()]
    corrected = " ".join(meant)
    return question if corrected == question.casefold() else f"{question} . {corrected}"


@lru_cache(maxsize=1024)
def _likely_word(word: str) -> str | None:
    """The known word behind a typo; None for a known word, or if no word is near."""
    if len(word) < SHORTEST_MISTYPED or not word.isalpha() or _is_known(word):
        return None
    near = [(_letters_apart(word, known), known) for known in _vocabulary() if known[0] == word[0]]
    apart, likely = min(near, default=(1, ""))
    allowed = 2 if min(len(word), len(likely)) >= LONG_WORD else 1
    return likely if apart <= allowed and len(likely) >= SHORTEST_MISTYPED else None


def _letters_apart(word: str, known: str) -> int:
    """Edit distance, also to a word of which only the beginning is known."""
    return min(OSA.distance(word, known), OSA.distance(word[: len(known)], known))


def _is_known(word: str) -> bool:
    return any(known.startswith(word) or word.startswith(known) for known in _vocabulary())


@cache
def _vocabulary() -> frozenset[str]:
    said = (word for _, phrases in _phrases() for phrase in phrases for word in words_of(phrase))
    return frozenset(
        word for word in (*known_words(), *said) if word.isalpha() and len(word) >= SHORTEST_WORD
    )


def _spoken_concepts(text: str) -> Iterable[str]:
    folded = " ".join(text.casefold().replace("’", "'").split())
    by_beginning = _phrases_by_beginning()
    for begun in _BEGINNING.finditer(folded):
        place = begun.start()
        for phrase, concepts in by_beginning.get(folded[place : place + KEY], ()):
            if folded.startswith(phrase, place):
                yield from concepts
    for concept, sign in _SIGNS.items():
        if sign.search(text):
            yield concept
    words = folded.split()
    if len(words) >= 6 and len(set(words)) * 2 < len(words):
        yield "repetition"
    if len(text) >= LONG:
        yield "filler"


_SIGNS = {
    "roles": re.compile(
        r"<\|?/?\w{0,9}(?:im_start|im_end|system|assistant|user|inst)\w{0,9}\|?>|\[/?(?:INST|SYS\w*)\]"
        r"|^\W*(?:system|assistant)\s*:",
        re.IGNORECASE | re.MULTILINE,
    ),
    "encoding": re.compile(
        r"\b(?=[A-Za-z]*[A-Z])(?=\w*\d)[A-Za-z0-9+/]{16,}={0,2}|(?:\\x[0-9a-f]{2}){4}", re.ASCII
    ),
    "invisible": re.compile("[\u200b-\u200d\u2060\ufeff\U000e0020-\U000e007f]"),
    "link": re.compile(r"https?://|!\["),
    "tool": re.compile(r"^\s*\{.*\"\w+\"\s*:", re.DOTALL),
}
"""Visible signs in a text, and the concept behind each."""


_BEGINNING = re.compile(r"(?<![^\W_])(?=\S)")
"""Where a phrase may begin: not within a word."""
KEY = 2
"""Letters used to look up phrases; no phrase is shorter."""


@cache
def _phrases_by_beginning() -> Mapping[str, Sequence[tuple[str, Sequence[str]]]]:
    found: dict[str, list[tuple[str, Sequence[str]]]] = {}
    for concepts, phrases in _phrases():
        for phrase in phrases:
            found.setdefault(phrase[:KEY], []).append((phrase, concepts))
    return found


@cache
def _phrases() -> Sequence[tuple[Sequence[str], Sequence[str]]]:
    place = resources.files("firecircle.store.bank").joinpath("spoken.toml")
    groups = tomllib.loads(place.read_text("utf-8"))["phrases"]
    return [(group["concepts"], group["said"]) for group in groups]


@lru_cache(maxsize=1024)
def _terms_of_sighting(words: str) -> tuple[str, ...]:
    return tuple(asked_terms(words))


def _shorten(text: str) -> str:
    if len(text) <= LONGEST_QUESTION:
        return text
    half = LONGEST_QUESTION // 2
    return f"{text[:half]} {text[-half:]}"
