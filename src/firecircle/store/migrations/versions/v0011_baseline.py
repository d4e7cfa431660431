"""The first version; new databases are made from `tables.py`."""

from __future__ import annotations

revision = "0011"
down_revision = None


def upgrade() -> None:
    """Do nothing: this is the first version."""
