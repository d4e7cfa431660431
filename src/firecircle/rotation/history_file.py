"""The participation history as one JSON document, to carry it from one machine to another.

A document is checked as a whole before the first row is taken over. One that is damaged is refused and
left as it is: a history is evidence, and nobody resets evidence.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from firecircle.errors import ConfigError
from firecircle.files import leads_out, write_whole
from firecircle.rotation.history import Draw, MemoryHistory, Participation, ParticipationHistory
from firecircle.shapes import Shape, config_error

LARGEST_BYTES = 1_000_000_000


class HistoryDocument(Shape):
    """What stands in the file."""

    kind: Literal["firecircle participation history"] = "firecircle participation history"
    schema_version: Literal[1] = 1
    participations: tuple[Participation, ...]
    draws: tuple[Draw, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import took over, and what was there already."""

    participations: int
    draws: int
    known: int


def document_of(history: ParticipationHistory) -> HistoryDocument:
    """All rows and draws of a history."""
    return HistoryDocument(participations=tuple(history.participations()), draws=tuple(history.draws()))


def export_history(history: ParticipationHistory, path: str | Path) -> HistoryDocument:
    """Write all rows and draws to one file, all of it or nothing."""
    if leads_out(os.fspath(path)):
        raise ConfigError("history", f"{path} is a link out of its folder", "name the file itself")
    document = document_of(history)
    text = document.model_dump_json(indent=2) + "\n"
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            # A device or a pipe is written to; replacing it would take it away from everybody.
            target.write_text(text, encoding="utf-8")
            return document
        write_whole(target, text, mode=0o600)
    except OSError as unwritable:
        raise ConfigError(
            "history", f"cannot write {path}: {unwritable.strerror or unwritable}", "name another file"
        ) from None
    return document


def import_history(path: str | Path, into: ParticipationHistory) -> Imported:
    """Take over every row and draw of a file that is not there yet.

    Importing the same file again takes nothing over, so an import that was interrupted is simply repeated.
    """
    document = read_document(path)
    rows = {_key(row): row for row in into.participations()}
    drawn = {draw.draw_id for draw in into.draws()}
    for row in document.participations:
        if rows.get(_key(row), row) != row:
            raise ConfigError(
                "history",
                (
                    f"{path} tells otherwise of {row.voice_id!r} in sitting {row.session_id!r} than what is"
                    " kept; nothing was imported, and the file was left as it is"
                ),
            )
    new_rows = [row for row in document.participations if _key(row) not in rows]
    new_draws = [draw for draw in document.draws if draw.draw_id not in drawn]
    for row in new_rows:
        into.append(row)
    for draw in new_draws:
        into.record_draw(draw, imported=True)
    total = len(document.participations) + len(document.draws)
    return Imported(len(new_rows), len(new_draws), total - len(new_rows) - len(new_draws))


def read_history(path: str | Path) -> MemoryHistory:
    """An exported history, to look at."""
    document = read_document(path)
    return MemoryHistory(document.participations, document.draws)


def read_document(path: str | Path) -> HistoryDocument:
    """The document in a file, checked as a whole."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as unreadable:
        raise ConfigError(
            "history", f"cannot read {path}: {unreadable.strerror or unreadable}", "name an exported history"
        ) from None
    if len(data) > LARGEST_BYTES:
        raise _refused(path, f"it is larger than {LARGEST_BYTES:,} bytes")
    try:
        document = HistoryDocument.model_validate_json(data)
    except ValidationError as invalid:
        wrong = config_error(invalid, "history")
        raise _refused(path, str(wrong if wrong.field else wrong.renamed(None))) from None
    sittings = Counter(_key(row) for row in document.participations)
    for (session, voice), times in sittings.items():
        if times > 1:
            raise _refused(path, f"{voice!r} stands {times} times in sitting {session!r}")
    return document


def _refused(path: str | Path, why: str) -> ConfigError:
    return ConfigError(
        "history", f"{path} is no history: {why}; nothing was taken from it, and the file was left as it is"
    )


def _key(row: Participation) -> tuple[str, str]:
    return row.session_id, row.voice_id
