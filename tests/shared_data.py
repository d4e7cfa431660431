"""Public data kept beside the project. Tests that need it skip, with the reason, where it is absent."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared(name: str) -> Path:
    """The path of a shared data file, or a skip."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"the shared data file {name} is not beside this checkout")
    return path
