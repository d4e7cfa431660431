"""The first version. A database has it from the start: new ones are made from `tables.py`."""

from __future__ import annotations

revision = "0011"
down_revision = None


def upgrade() -> None:
    """Nothing comes before it."""
