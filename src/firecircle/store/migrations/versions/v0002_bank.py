"""The bank: patterns that circles found, where each was seen, and the tags to find them by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "bank_entries",
        sa.Column("pk", KEY, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("pattern_type", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("sightings", sa.Integer(), nullable=False),
        sa.Column("attacks", sa.Integer(), nullable=False),
        sa.Column("highest_agreement", sa.Double(), nullable=False),
        sa.Column("first_seen_at", sa.Double(), nullable=False),
        sa.Column("last_seen_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("bank_entries_by_type", "bank_entries", ["category", "pattern_type"])
    op.create_index("bank_entries_by_sightings", "bank_entries", ["sightings", "pk"])
    op.create_table(
        "bank_sightings",
        sa.Column("pk", KEY, nullable=False),
        sa.Column("entry_pk", KEY, nullable=False),
        sa.Column("attack_id", sa.Text(), nullable=False),
        sa.Column("circle_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("agreement", sa.Double(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("models", sa.Text(), nullable=False),
        sa.Column("layers", sa.Text(), nullable=False),
        sa.Column("examples", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["entry_pk"], ["bank_entries.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("entry_pk", "attack_id", "circle_id"),
    )
    op.create_index("bank_sightings_by_attack", "bank_sightings", ["attack_id"])
    op.create_index("bank_sightings_by_circle", "bank_sightings", ["circle_id"])
    op.create_table(
        "bank_tags",
        sa.Column("sighting_pk", KEY, nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["sighting_pk"], ["bank_sightings.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("sighting_pk", "tag"),
    )
    op.create_index("bank_tags_by_tag", "bank_tags", ["tag", "sighting_pk"])
