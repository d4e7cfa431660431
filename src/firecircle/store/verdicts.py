"""Calibrations of the verdict that were fitted here: their voices, their circles, their quality."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from pydantic import ValidationError

from firecircle.circle.calibrated import VerdictCalibration
from firecircle.errors import ConfigError, StoreError
from firecircle.store.database import Database, storable
from firecircle.store.tables import verdict_calibrations as table


class VerdictStore:
    """The calibrations of one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def keep(self, calibration: VerdictCalibration, circles: Iterable[str] = ()) -> None:
        """Save a calibration, with the ids of the circles or records it was fitted on."""
        row = {
            "id": storable(calibration.fit.id),
            "voices": _key(calibration.voices),
            "rounds": calibration.rounds,
            "fitted_at": calibration.fit.fitted_at,
            "body": calibration.model_dump_json(),
            "circles": storable("\n".join(circles)),
        }
        with self.database.writing() as connection:
            connection.execute(sa.delete(table).where(table.c.id == row["id"]))
            connection.execute(sa.insert(table), [row])

    def find(self, models: Sequence[str], max_rounds: int) -> VerdictCalibration | None:
        """The newest calibration for circles of these voices and this number of rounds."""
        query = (
            sa.select(table.c.id, table.c.body)
            .where(table.c.voices == _key(models), table.c.rounds <= max_rounds)
            .order_by(table.c.fitted_at.desc())
            .limit(1)
        )
        with self.database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else self._read(row.id, row.body)

    def each(self) -> tuple[VerdictCalibration, ...]:
        """All calibrations, newest first."""
        with self.database.reading() as connection:
            rows = connection.execute(sa.select(table).order_by(table.c.fitted_at.desc())).all()
        return tuple(self._read(row.id, row.body) for row in rows)

    def fitted_on(self, name: str) -> tuple[str, ...]:
        """The ids of the circles or records that a calibration was fitted on."""
        with self.database.reading() as connection:
            text = connection.execute(sa.select(table.c.circles).where(table.c.id == name)).scalar()
        return tuple(text.split("\n")) if text else ()

    def remove(self, name: str) -> str:
        """Delete the calibration with this id or unique prefix; returns its id."""
        with self.database.writing() as connection:
            every = connection.execute(sa.select(table.c.id)).scalars().all()
            found = [known for known in every if known == name] or [
                known for known in every if name and known.startswith(name)
            ]
            if len(found) != 1:
                why = "several calibrations begin so" if found else "no such calibration"
                raise ConfigError("--remove", f"{name}: {why}", "`firecircle calibrate --list` shows them")
            connection.execute(sa.delete(table).where(table.c.id == found[0]))
            return str(found[0])

    def _read(self, name: str, body: str) -> VerdictCalibration:
        try:
            return VerdictCalibration.model_validate_json(body)
        except ValidationError:
            raise StoreError(
                f"store: the calibration {name} in {self.database.name} cannot be read;"
                f" `firecircle calibrate --remove {name}` takes it out"
            ) from None


def _key(models: Iterable[str]) -> str:
    return storable("\n".join(sorted(models)))
