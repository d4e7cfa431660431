"""Circles on their way from one store to another: a file of JSON lines, one circle a line.

The first line says what the file is; each line after it holds a circle's id, label and run beside its
document. Reading is strict and line by line, so a damaged line costs that one circle and has a number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from firecircle.circle.panel import Panel
from firecircle.circle.result import SCHEMA_VERSION, FireCircleResult
from firecircle.errors import ConfigError, StoreError
from firecircle.shapes import config_error, writable
from firecircle.store.circles import CircleStore, id_begins, load_kept
from firecircle.store.documents import Kept
from firecircle.store.finding import LISTED, Filters, summary_of
from firecircle.store.keeping import add_kept, own_id

KIND = "firecircle circles"
FORMAT = 1
LONGEST_LINE = 256_000_000
AT_ONCE = 50
"""How many circles one transaction takes over: others may write in between."""

_GIVEN = ("label", "run_id", "arm", "record_id")
"""What a circle was told by others than its voices."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7e]")


@dataclass(frozen=True, slots=True)
class Parcel:
    """A circle or panel from elsewhere, checked."""

    kept: Kept
    label: str | None = None
    run_id: str | None = None
    arm: str | None = None
    record_id: str | None = None


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that holds no circle, and why."""

    number: int
    why: str


@dataclass(slots=True)
class Taken:
    """What an import has done so far."""

    added: int = 0
    known: int = 0
    bad: int = 0


# -- out -----------------------------------------------------------------------------------------------


def exported(
    circles: CircleStore, filters: Filters, on_unreadable: Callable[[StoreError], None] | None = None
) -> Iterator[str]:
    """The lines of a file with every circle that matches, the oldest first; in ASCII, without line ends.

    A circle that cannot be read ends it, unless somebody wants to be told instead.
    """
    yield json.dumps({"kind": KIND, "format": FORMAT})
    for summary, kind, text in circles.each_document(filters):
        if isinstance(text, StoreError):
            if on_unreadable is None:
                raise text
            on_unreadable(text)
            continue
        about = {"id": summary.id, "kind": kind, **{name: getattr(summary, name) for name in _GIVEN}}
        yield f'{json.dumps(about)[:-1]}, "document": {_in_ascii(text)}}}'


def _in_ascii(text: str) -> str:
    """JSON with everything beyond ASCII written as escapes, so that nothing in it can steer a terminal."""
    return text if text.isascii() and "\x7f" not in text else _BEYOND_ASCII.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f"


# -- in ------------------------------------------------------------------------------------------------


def imported(circles: CircleStore, file: BinaryIO) -> Iterator[BadLine | Taken]:
    """Take over what a file holds; tells of each bad line, and how far it is after each transaction.

    A circle is added whole or not at all. One that is there already, with the same content, is left alone,
    so an import that was interrupted is simply repeated.
    """
    taken = Taken()
    waiting: list[Parcel] = []
    for found in parcels_in(file):
        if isinstance(found, BadLine):
            taken.bad += 1
            yield found
            continue
        waiting.append(found)
        if len(waiting) >= AT_ONCE:
            _take_over(circles, waiting, taken)
            waiting = []
            yield taken
    _take_over(circles, waiting, taken)
    yield taken


def parcels_in(file: BinaryIO) -> Iterator[Parcel | BadLine]:
    """What each line of an export holds; or the one result that `evaluate --json` printed."""
    first = _next_line(file)
    header = _json(first)
    if isinstance(header, dict) and header.get("kind") == KIND:
        _require_format(header)
        yield from _parcels(iter(lambda: _next_line(file), b""))
        return
    whole = _json(first + file.read(LONGEST_LINE))
    if not isinstance(whole, dict):
        raise ConfigError(
            "import",
            "neither an export nor a result",
            "give a file that `circles export` or `evaluate --json` wrote",
        )
    yield Parcel(_kept(_result_in(whole)))


def _parcels(lines: Iterable[bytes]) -> Iterator[Parcel | BadLine]:
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        try:
            yield _parcel(line)
        except ConfigError as wrong:
            yield BadLine(number, str(wrong))


def _parcel(line: bytes) -> Parcel:
    told = _json(line)
    if not isinstance(told, dict) or not isinstance(told.get("document"), dict):
        cut_off = "" if line.endswith(b"\n") else ", it breaks off"
        raise ConfigError(None, f"no circle in it{cut_off}")
    given = {name: _text_or_none(told, name) for name in _GIVEN}
    return Parcel(_kept(told["document"]), **given)


def _kept(document: Mapping[str, Any]) -> Kept:
    shape = Panel if "panel_id" in document else FireCircleResult
    version = document.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise ConfigError(
            None,
            f"written by a newer Fire Circle (schema {version}, this one reads {SCHEMA_VERSION})",
            "upgrade firecircle",
        )
    try:
        kept = shape.model_validate(document)
    except ValidationError as invalid:
        raise config_error(invalid, "circle") from None
    if not _ID.fullmatch(own_id(kept)):
        raise ConfigError("circle", "its id is none")
    return kept


def _result_in(whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """The circle in what `evaluate --json` printed: by itself, in an error, or in the metrics of a prompt."""
    if "dialogue_history" in whole or "panel_id" in whole:
        return whole
    for name in ("partial_result", "fire_circle"):
        if isinstance(held := whole.get(name), dict):
            return held
    raise ConfigError(
        "import", "a result without what was asked and said; only circles and panels can be kept"
    )


def _require_format(header: Mapping[str, Any]) -> None:
    if header.get("format") != FORMAT:
        raise ConfigError(
            "import",
            f"format {header.get('format')!r:.40}, this Fire Circle reads {FORMAT}",
            "upgrade firecircle",
        )


def _next_line(file: BinaryIO) -> bytes:
    line = file.readline(LONGEST_LINE + 1)
    if len(line) > LONGEST_LINE:
        raise ConfigError("import", f"a line of more than {LONGEST_LINE:,} bytes; that is no export")
    return line


def _json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def _text_or_none(told: Mapping[str, Any], name: str) -> str | None:
    value = told.get(name)
    if value is not None and not isinstance(value, str):
        raise ConfigError(name, "not a text")
    return value if value is None else writable(value)


def _take_over(circles: CircleStore, parcels: Sequence[Parcel], taken: Taken) -> None:
    if not parcels:
        return
    added = 0
    with circles.database.writing() as connection:
        for parcel in parcels:
            if not _is_known(connection, parcel.kept):
                given = {name: getattr(parcel, name) for name in _GIVEN}
                add_kept(connection, parcel.kept, **given)
                added += 1
    taken.added += added
    taken.known += len(parcels) - added


def _is_known(connection: Connection, kept: Kept) -> bool:
    """Whether this very circle is there, under its own id or a number behind it."""
    own = own_id(kept)
    rows = connection.execute(sa.select(*LISTED).where(id_begins(own))).mappings().all()
    for row in rows:
        summary = summary_of(row)
        if re.fullmatch(rf"{re.escape(own)}(-\d+)?", summary.id):
            try:
                if load_kept(connection, summary) == kept:
                    return True
            except StoreError:
                continue
    return False
