"""Reading the bank: by type, tag and words, the latest words of each entry, and one entry in full."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from firecircle.errors import ConfigError
from firecircle.store.bank.entries import BankEntry, BankFilters, FullEntry, Sighting
from firecircle.store.tables import bank_entries, bank_sightings, bank_tags

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
    """For each entry that matches the folded words of its latest sightings, the latest first."""
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
