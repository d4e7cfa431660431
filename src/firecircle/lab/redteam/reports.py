"""Where reports of attacks are kept: one JSON file each, in the user's data folder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from firecircle.lab.redteam.trial import RedTeamReport
from firecircle.settings import user_folder


def reports_folder() -> Path:
    """The folder of the reports. It need not exist."""
    return user_folder("data") / "redteam"


def keep(report: RedTeamReport) -> Path:
    """Write a report into the folder, under the moment it began, unless it is there already."""
    folder = reports_folder()
    folder.mkdir(parents=True, exist_ok=True)
    name = time.strftime("%Y%m%d-%H%M%S", time.localtime(report.started_at))
    text = report.model_dump_json(indent=2)
    number = 1
    while True:
        path = folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            if path.read_bytes() == text.encode():
                return path
            number += 1
        else:
            return path


def kept_reports() -> Iterator[tuple[str, RedTeamReport | None]]:
    """The reports by name, the newest first; None for a file that is none."""
    for path in sorted(reports_folder().glob("*.json"), reverse=True):
        try:
            yield path.stem, RedTeamReport.model_validate_json(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValidationError):
            yield path.stem, None
