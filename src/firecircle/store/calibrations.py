"""Which circles have counted for a voice's declared characteristics: each is evidence once."""

from __future__ import annotations

import time
from collections.abc import Iterable

import sqlalchemy as sa

from firecircle.store.database import Database, insert_unless_there
from firecircle.store.rows import storable
from firecircle.store.tables import calibrated


class CalibrationStore:
    """What calibrations of one database have counted."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def counted_for(self, circle_id: str) -> frozenset[str]:
        """The voices for whom this circle has been counted."""
        query = sa.select(calibrated.c.voice).where(calibrated.c.circle_id == storable(circle_id))
        with self.database.reading() as connection:
            return frozenset(connection.execute(query).scalars())

    def record(self, counted: Iterable[tuple[str, str]]) -> None:
        """Keep that these circles were counted for these voices: pairs of a circle's id and a voice."""
        now = time.time()
        rows = [
            {"circle_id": storable(circle), "voice": storable(voice), "at": now} for circle, voice in counted
        ]
        if rows:
            with self.database.writing() as connection:
                connection.execute(insert_unless_there(connection.dialect.name, calibrated), rows)
