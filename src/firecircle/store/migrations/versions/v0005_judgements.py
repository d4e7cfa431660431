"""Which arm of a run a circle is, and over which record."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the columns; circles of earlier runs were not kept."""
    for name in ("arm", "record_id"):
        op.add_column("circles", sa.Column(name, sa.Text()))
