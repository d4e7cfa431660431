"""The tables of the bank. A change here needs a migration beside it, in `migrations/versions`."""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Index, Integer, Table, Text, UniqueConstraint

from firecircle.store.tables import Key, metadata

bank_entries = Table(
    "bank_entries",
    metadata,
    Column("pk", Key, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("category", Text, nullable=False),
    Column("pattern_type", Text, nullable=False),
    Column("description", Text, nullable=False),  # the first wording; later ones are with their sightings
    Column("sightings", Integer, nullable=False),
    Column("attacks", Integer, nullable=False),  # how many different ones
    Column("highest_agreement", Double, nullable=False),
    Column("first_seen_at", Double, nullable=False),
    Column("last_seen_at", Double, nullable=False),
    Index("bank_entries_by_type", "category", "pattern_type"),
    Index("bank_entries_by_sightings", "sightings", "pk"),
)

bank_sightings = Table(
    "bank_sightings",
    metadata,
    Column("pk", Key, primary_key=True),
    Column("entry_pk", Key, ForeignKey("bank_entries.pk", ondelete="CASCADE"), nullable=False),
    Column("attack_id", Text, nullable=False),
    Column("circle_id", Text, nullable=False),  # empty when it was told without one
    Column("at", Double, nullable=False),
    Column("agreement", Double, nullable=False),
    Column("description", Text, nullable=False),
    Column("models", Text, nullable=False),  # names, one a line
    Column("layers", Text, nullable=False),  # names, one a line
    Column("examples", Text, nullable=False),  # a JSON list of quotes
    Column("words", Text, nullable=False),  # description and quotes, folded, for searching
    UniqueConstraint("entry_pk", "attack_id", "circle_id"),
    Index("bank_sightings_by_attack", "attack_id"),
    Index("bank_sightings_by_circle", "circle_id"),
)

bank_tags = Table(
    "bank_tags",
    metadata,
    Column("sighting_pk", Key, ForeignKey("bank_sightings.pk", ondelete="CASCADE"), primary_key=True),
    Column("tag", Text, primary_key=True),
    Index("bank_tags_by_tag", "tag", "sighting_pk"),
)
