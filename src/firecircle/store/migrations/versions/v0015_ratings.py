"""Store what each person who reviewed a circle said."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the column. A review of before counts as one by a person without a name."""
    op.add_column("circles", sa.Column("ratings", sa.Text))
