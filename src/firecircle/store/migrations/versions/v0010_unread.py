"""Whether a prompt is written in what no voice that judged it reads: without an alarm it is not clean."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the column. Of circles that are there already it is not known."""
    op.add_column("circles", sa.Column("unread", sa.Boolean()))
