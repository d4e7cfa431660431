"""Indexes for what was looked for row by row: batches, the greatest F, and the kinds of a label."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the indexes."""
    # Prefixes are found by comparing bytes, whatever the order of words in the database is.
    in_a_batch = sa.text("run_id IS NULL AND record_id IS NOT NULL")
    op.create_index(
        "circles_by_batch",
        "circles",
        ["record_id", "pk"],
        postgresql_where=in_a_batch,
        sqlite_where=in_a_batch,
        postgresql_ops={"record_id": "text_pattern_ops"},
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE INDEX circles_by_falsehood ON circles (falsehood, pk)")
    else:  # in the order of the list, with those that have none at its end
        op.execute("CREATE INDEX circles_by_falsehood ON circles (falsehood DESC NULLS LAST, pk DESC)")
        op.execute('CREATE INDEX circles_by_kind ON circles (label COLLATE "C")')
