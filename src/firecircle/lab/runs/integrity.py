"""Whether the files of a finished run are still as they were written."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple


class Damage(NamedTuple):
    """What of a finished run is no longer as it was left: a line for each file, None where it is whole."""

    end: str | None = None
    journal: str | None = None
    table: str | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """What there is to tell."""
        return tuple(filter(None, self))


def sha256_of(path: Path) -> str:
    """Of all a file holds."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
