"""Remove the viewer's accounts, with their sessions, tokens and activity log."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Drop the tables, with the digests of passwords in them."""
    for table in ("sessions", "tokens", "actions", "accounts"):
        op.drop_table(table)
