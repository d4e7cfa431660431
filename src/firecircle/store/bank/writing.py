"""Write to the bank: patterns with the same meaning become one entry, and every sighting counts once."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from firecircle.store.bank.entries import FullEntry, NewSighting
from firecircle.store.bank.search import SAME_MEANING, likeness
from firecircle.store.database import BANK_LOCK, be_the_only_one, storable
from firecircle.store.tables import bank_entries, bank_sightings, bank_tags

MOST_QUOTES, LONGEST_QUOTE = 20, 1000


def add_sighting(
    connection: Connection,
    category: str,
    pattern_type: str,
    sighting: NewSighting,
    *,
    known_as: str | None = None,
) -> tuple[str, bool]:
    """Save a sighting; returns the id of its entry, and whether the sighting is new.

    `known_as` is another bank's name for the entry; without it the sighting's own description is used.
    """
    be_the_only_one(connection, BANK_LOCK)  # otherwise two processes would call the same pattern new
    pk, entry_id = _entry_for(connection, category, pattern_type, known_as or sighting.description)
    known = sa.select(bank_sightings.c.pk).where(
        bank_sightings.c.entry_pk == pk,
        bank_sightings.c.attack_id == storable(sighting.attack_id),
        bank_sightings.c.circle_id == storable(sighting.circle_id),
    )
    if connection.execute(known).first() is not None:
        return entry_id, False
    _insert_sighting(connection, pk, sighting)
    recount(connection, [pk])
    return entry_id, True


def add_entry(connection: Connection, entry: FullEntry) -> tuple[str, int]:
    """Add an entry of another bank; returns the id of the entry here, and the number of new sightings.

    It stays one entry whatever its sightings are called, because the other bank decided that they mean the
    same.
    """
    new = 0
    entry_id = ""
    for seen in entry.seen:
        sighting = NewSighting(
            description=seen.description,
            agreement=seen.agreement,
            attack_id=seen.attack_id,
            examples=seen.examples,
            models=seen.models,
            layers=seen.layers,
            circle_id=seen.circle_id,
            seen_at=seen.at,
            tags=seen.tags,
        )
        entry_id, is_new = add_sighting(
            connection, entry.category, entry.pattern_type, sighting, known_as=entry.description
        )
        new += is_new
    return entry_id, new


def remove_sightings(connection: Connection, which: sa.ColumnElement[bool]) -> int:
    """Delete sightings, and entries that have none left."""
    be_the_only_one(connection, BANK_LOCK)  # otherwise two processes would call the same pattern new
    touched = connection.execute(sa.select(bank_sightings.c.entry_pk).where(which).distinct()).scalars().all()
    gone = connection.execute(sa.delete(bank_sightings).where(which)).rowcount
    unseen = ~sa.exists().where(bank_sightings.c.entry_pk == bank_entries.c.pk)
    connection.execute(sa.delete(bank_entries).where(bank_entries.c.pk.in_(touched), unseen))
    recount(connection, touched)
    return gone


def recount(connection: Connection, keys: Sequence[int]) -> None:
    """Recompute the figures of these entries from their sightings."""
    of = bank_sightings.c
    mine = of.entry_pk == bank_entries.c.pk

    def over_sightings(value: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
        return sa.select(value).where(mine).scalar_subquery()

    connection.execute(
        sa.update(bank_entries)
        .where(bank_entries.c.pk.in_(keys))
        .values(
            sightings=over_sightings(sa.func.count()),
            attacks=over_sightings(sa.func.count(of.attack_id.distinct())),
            highest_agreement=over_sightings(sa.func.max(of.agreement)),
            first_seen_at=over_sightings(sa.func.min(of.at)),
            last_seen_at=over_sightings(sa.func.max(of.at)),
        )
    )


def _entry_for(connection: Connection, category: str, pattern_type: str, description: str) -> tuple[int, str]:
    category, pattern_type, description = map(storable, (category, pattern_type, description))
    of = bank_entries.c
    alike = sa.select(of.pk, of.id, of.description).where(
        of.category == category, of.pattern_type == pattern_type
    )
    rows = connection.execute(alike.order_by(of.pk)).all()
    nearest = max(rows, key=lambda row: likeness(row.description, description, pattern_type), default=None)
    if nearest and likeness(nearest.description, description, pattern_type) >= SAME_MEANING:
        return nearest.pk, nearest.id
    entry_id = hashlib.sha256("\0".join((category, pattern_type, description)).encode()).hexdigest()[:12]
    row = {
        "id": entry_id,
        "category": category,
        "pattern_type": pattern_type,
        "description": description,
        "sightings": 0,
        "attacks": 0,
        "highest_agreement": 0.0,
        "first_seen_at": 0.0,
        "last_seen_at": 0.0,
    }
    new = connection.execute(sa.insert(bank_entries).values(row).returning(of.pk)).scalar_one()
    return new, entry_id


def _insert_sighting(connection: Connection, entry_pk: int, sighting: NewSighting) -> None:
    quotes = [storable(quote)[:LONGEST_QUOTE] for quote in sighting.examples[:MOST_QUOTES]]
    description = storable(sighting.description)
    row = {
        "entry_pk": entry_pk,
        "attack_id": storable(sighting.attack_id),
        "circle_id": storable(sighting.circle_id),
        "at": time.time() if sighting.seen_at is None else sighting.seen_at,
        "agreement": sighting.agreement,
        "description": description,
        "models": storable("\n".join(sighting.models)),
        "layers": storable("\n".join(sighting.layers)),
        "examples": json.dumps(quotes),
        "words": "\n".join((description, *quotes)).casefold(),
    }
    pk = connection.execute(sa.insert(bank_sightings).values(row).returning(bank_sightings.c.pk)).scalar_one()
    tags = [{"sighting_pk": pk, "tag": storable(tag)} for tag in sighting.all_tags]
    connection.execute(sa.insert(bank_tags), tags)
