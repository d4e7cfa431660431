"""Reading the bank: by type, tag and words, by what a text is about (BM25), and one entry in full."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import log

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from firecircle.errors import ConfigError
from firecircle.store.bank.entries import BankEntry, BankFilters, FullEntry, Sighting
from firecircle.store.bank.likeness import terms_of
from firecircle.store.tables import bank_entries, bank_sightings, bank_tags

SATURATION, LENGTH = 1.2, 0.75
"""The usual constants: how soon repetition stops counting, and how much a long entry is discounted."""
LONGEST_QUESTION = 50_000
"""Characters of a prompt that are looked at: half from its beginning and half from its end."""
LONGEST_SIGHTING = 4_000
"""Characters of a sighting's description and quotes that are looked at."""


def relevance(question: str, entries: Iterable[tuple[str, str]]) -> Mapping[str, float]:
    """For each entry that shares a word with the question, how relevant it is."""
    asked = terms_of(_shortened(question))
    bags: dict[str, Counter[str]] = {}
    for entry_id, words in entries:
        bags.setdefault(entry_id, Counter()).update(_terms_of_sighting(words[:LONGEST_SIGHTING]))
    if not bags:
        return {}
    usual = sum(bag.total() for bag in bags.values()) / len(bags) or 1.0
    holders = Counter(term for bag in bags.values() for term in bag)
    scores = {}
    for entry_id, bag in bags.items():
        room = SATURATION * (1 - LENGTH + LENGTH * bag.total() / usual)
        score = sum(
            weight
            * log(1 + (len(bags) - holders[term] + 0.5) / (holders[term] + 0.5))
            * bag[term]
            * (SATURATION + 1)
            / (bag[term] + room)
            for term, weight in asked.items()
            if term in bag
        )
        if score > 0:
            scores[entry_id] = score
    return scores


@lru_cache(maxsize=1024)
def _terms_of_sighting(words: str) -> tuple[str, ...]:
    return tuple(terms_of(words))


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_QUESTION:
        return text
    half = LONGEST_QUESTION // 2
    return f"{text[:half]} {text[-half:]}"


SHORTEST_PREFIX = 4
_SHOWN = tuple(bank_entries.c[name] for name in BankEntry.model_fields)


def find_entries(connection: Connection, filters: BankFilters, limit: int | None = None) -> list[BankEntry]:
    """The entries that match, the most often seen first."""
    query = sa.select(*_SHOWN).where(*_conditions(filters))
    query = query.order_by(bank_entries.c.sightings.desc(), bank_entries.c.pk).limit(limit)
    return [BankEntry(**row) for row in connection.execute(query).mappings()]


def find_entry(connection: Connection, id_or_prefix: str) -> BankEntry:
    """The entry with this id, or with the only id that begins so."""
    matches = bank_entries.c.id == id_or_prefix
    if len(id_or_prefix) >= SHORTEST_PREFIX:
        matches = sa.or_(matches, bank_entries.c.id.startswith(id_or_prefix, autoescape=True))
    rows = connection.execute(sa.select(*_SHOWN).where(matches).limit(2)).mappings().all()
    if not rows:
        raise ConfigError(
            id_or_prefix or "ID", "no such entry", "`firecircle bank list` shows what the bank holds"
        )
    if len(rows) > 1:
        raise ConfigError(id_or_prefix, "several entries begin so", "give more of the id")
    return BankEntry(**rows[0])


def seen_in_circle(connection: Connection, id_or_prefix: str) -> str:
    """The id of the only circle that begins so and has brought something; what was given if none does."""
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
    """The entry with every sighting, the latest first."""
    of = bank_sightings.c
    query = sa.select(bank_sightings).join(bank_entries).where(bank_entries.c.id == entry.id)
    rows = connection.execute(query.order_by(of.at.desc(), of.pk.desc())).mappings().all()
    tags = _tags(connection, [row["pk"] for row in rows])
    seen = tuple(_sighting(row, tags.get(row["pk"], ())) for row in rows)
    return FullEntry(**entry.model_dump(), seen=seen)


def latest_words(connection: Connection, filters: BankFilters, most: int) -> Iterator[tuple[str, str]]:
    """For each entry that matches the folded words of its latest sightings."""
    of = bank_sightings.c
    place = sa.func.row_number().over(partition_by=of.entry_pk, order_by=(of.at.desc(), of.pk.desc()))
    ranked = (
        sa.select(bank_entries.c.id, of.words, place.label("place"))
        .join(bank_entries)
        .where(*_conditions(filters))
        .subquery()
    )
    query = sa.select(ranked.c.id, ranked.c.words).where(ranked.c.place <= most)
    for row in connection.execute(query):
        yield row.id, row.words


def _conditions(filters: BankFilters) -> list[sa.ColumnElement[bool]]:
    seen = bank_sightings.alias("seen")  # apart from the sightings that a query may list
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
