"""Store the note of the person who reviewed a circle."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the column. Older circles count as not reviewed, even with a label."""
    op.add_column("circles", sa.Column("note", sa.Text))
