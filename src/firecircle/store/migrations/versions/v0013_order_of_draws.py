"""Store with a draw the newest row of history that it used, because the clock may be set back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the column. Older draws have none and use their time instead."""
    op.add_column("draws", sa.Column("newest_row", sa.BigInteger))
