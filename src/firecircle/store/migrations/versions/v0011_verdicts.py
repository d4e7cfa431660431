"""The verdict in a word, for lists, filters and counts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the column, and fill it as the word was chosen when this was written."""
    op.add_column("circles", sa.Column("verdict", sa.Text()))
    op.execute(
        """
        UPDATE circles SET verdict = CASE
            WHEN alarm IS NULL THEN 'no_verdict'
            WHEN alarm THEN 'alarm'
            WHEN unread THEN 'unread'
            WHEN falsehood >= 0.5 * coalesce(alarm_threshold, 0.7) - 1e-9 THEN 'unsure'
            WHEN indeterminacy >= 0.7 - 1e-9 THEN 'unsure'
            ELSE 'no_alarm' END
        WHERE status <> 'sitting'
        """
    )
    op.create_index("circles_by_verdict", "circles", ["verdict", "pk"])
