"""A circle knows the note of the person who reviewed it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """No circle of before was reviewed, whoever gave its label."""
    op.add_column("circles", sa.Column("note", sa.Text))
