"""A draw knows the newest row of the history that it rested on: the clock may be set back later."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Draws of before have none; their moment tells which rows came earlier."""
    op.add_column("draws", sa.Column("newest_row", sa.BigInteger))
