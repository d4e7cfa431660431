"""The calibrations that come with the package, for the embedded circles; `training.verdict` writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import resources

from firecircle.circle.calibrated import VerdictCalibration
from firecircle.names import is_embedded

FILE = "calibrations.json"


def shipped_calibration(models: Sequence[str], max_rounds: int) -> VerdictCalibration | None:
    """The calibration for circles of these voices, if one comes with the package."""
    if not all(map(is_embedded, models)):
        return None
    return next((known for known in shipped_calibrations() if known.fits(models, max_rounds)), None)


@cache
def shipped_calibrations() -> tuple[VerdictCalibration, ...]:
    """Every calibration that comes with the package."""
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return tuple(map(VerdictCalibration.model_validate, json.loads(text)))
