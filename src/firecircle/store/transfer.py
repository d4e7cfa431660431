"""Export and import of circles: a file of JSON lines, one circle per line.

The first line identifies the file; each further line has a circle's id, label, run and document. Reading is
strict and line by line, so a damaged line costs one circle and is reported by number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from firecircle.circle.conclude import reaggregate
from firecircle.circle.panel import Panel
from firecircle.circle.plausible import require_plausible
from firecircle.circle.result import SCHEMA_VERSION, FireCircleResult
from firecircle.errors import ConfigError, StoreError
from firecircle.names import BATCH_KIND, VERDICT_KIND
from firecircle.shapes import config_error, writable
from firecircle.store.circles import CircleStore, id_begins, load_circle
from firecircle.store.database import IMPORT_LOCK, be_the_only_one
from firecircle.store.finding import LISTED, Filters, summary_of
from firecircle.store.rows import CircleOrPanel
from firecircle.store.writing import add_finished, own_id

KIND = "firecircle circles"
FORMAT = 1
HEADER = json.dumps({"kind": KIND, "format": FORMAT})
LONGEST_LINE = 256_000_000
IMPORTED = "imported: what was said is as the file has it, and the verdict was concluded again from that"
"""The advisory of every imported circle."""
Judged = TypeVar("Judged", FireCircleResult, Panel)
AT_ONCE = 50
"""Circles added in one transaction, so that others can write in between."""

_GIVEN = ("label", "run_id", "arm", "record_id", "note", "ratings")
"""Facts about a circle that do not come from its voices."""
_LARGEST_NUMBER = 1e15
"""Times, sums and counts are all below it. A seed may be any number."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7e]")


@dataclass(frozen=True, slots=True)
class ImportedCircle:
    """A circle or panel from a file, checked and concluded again."""

    judged: CircleOrPanel
    claimed: CircleOrPanel
    """As the file has it; its verdict cannot be trusted."""
    label: str | None = None
    run_id: str | None = None
    arm: str | None = None
    record_id: str | None = None
    note: str | None = None
    ratings: str | None = None


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line without a circle, and why."""

    number: int
    why: str


@dataclass(slots=True)
class ImportProgress:
    """The progress of an import."""

    added: int = 0
    known: int = 0
    bad: int = 0


def export_lines(
    circles: CircleStore, filters: Filters, on_unreadable: Callable[[StoreError], None] | None = None
) -> Iterator[str]:
    """The lines of an export of every matching circle, oldest first; in ASCII, without line ends.

    An unreadable circle ends it, unless `on_unreadable` receives the error.
    """
    yield HEADER
    for summary, kind, text in circles.each_document(filters):
        if isinstance(text, StoreError):
            if on_unreadable is None:
                raise text
            on_unreadable(text)
            continue
        yield _line(
            text, {"id": summary.id, "kind": kind, **{name: getattr(summary, name) for name in _GIVEN}}
        )


def dataset_lines(
    circles: CircleStore, filters: Filters, on_unreadable: Callable[[StoreError], None]
) -> Iterator[str]:
    """The prompts of the matching circles as a dataset for the lab, with the readers' evaluations."""
    for summary, _, text in circles.each_document(filters):
        if isinstance(text, StoreError):
            on_unreadable(text)
            continue
        prompt = json.loads(text)["prompt"]
        line = {name: prompt.get(name) for name in ("system", "application", "user", "turns")}
        said = {"label": summary.label, "note": summary.note or "", "verdict": summary.verdict}
        if len(summary.said_by) > 1:
            line["labels"] = {rater: label for rater, (label, _) in summary.said_by.items()}
        yield json.dumps({"id": summary.id, **line, **said, "falsehood": summary.falsehood})


def _line(document: str, about: Mapping[str, str | None]) -> str:
    return f'{json.dumps(about)[:-1]}, "document": {_in_ascii(document)}}}'


def _in_ascii(text: str) -> str:
    """JSON with escapes for everything beyond ASCII, so that nothing in it can control a terminal."""
    return text if text.isascii() and "\x7f" not in text else _BEYOND_ASCII.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"


def import_circles(circles: CircleStore, file: BinaryIO) -> Iterator[BadLine | ImportProgress]:
    """Add the circles of a file; yields each bad line, and the progress after each transaction.

    A circle is added whole or not at all. One that is there already with the same content is skipped, so an
    interrupted import can be repeated.
    """
    progress = ImportProgress()
    batch: list[ImportedCircle] = []
    for circle in circles_in(file):
        if isinstance(circle, BadLine):
            progress.bad += 1
            yield circle
            continue
        batch.append(circle)
        if len(batch) >= AT_ONCE:
            _add_new(circles, batch, progress)
            batch = []
            yield progress
    _add_new(circles, batch, progress)
    yield progress


def circles_in(file: BinaryIO) -> Iterator[ImportedCircle | BadLine]:
    """The circle in each line of an export, or the single result of `evaluate --json=full`."""
    first = _next_line(file)
    header = _json(first)
    if isinstance(header, dict) and header.get("kind") == KIND:
        _require_format(header)
        yield from _circles_in_lines(file)
        return
    whole = _json(first + file.read(LONGEST_LINE))
    if not isinstance(whole, dict):
        raise ConfigError(
            "import",
            "neither an export nor a result",
            "give a file that `circles export` or `evaluate --json=full` wrote",
        )
    yield _import_circle(_result_in(whole))


def _circles_in_lines(file: BinaryIO) -> Iterator[ImportedCircle | BadLine]:
    for number, line in enumerate(iter(lambda: _next_line(file), b""), start=2):
        if not line.strip():
            continue
        try:
            yield _circle_in_line(line)
        except ConfigError as wrong:
            yield BadLine(number, str(wrong))


def _circle_in_line(line: bytes) -> ImportedCircle:
    fields = _json(line)
    if not isinstance(fields, dict) or not isinstance(fields.get("document"), dict):
        cut_off = "" if line.endswith(b"\n") else ", it breaks off"
        raise ConfigError(None, f"no circle in it{cut_off}")
    about = {name: _text_or_none(fields, name) for name in _GIVEN}
    return _import_circle(fields["document"], **about)


def _import_circle(document: Mapping[str, Any], **about: str | None) -> ImportedCircle:
    claimed = _parse(document)
    return ImportedCircle(_conclude(claimed), claimed, **about)


def _conclude(claimed: CircleOrPanel) -> CircleOrPanel:
    """The circle, marked as imported, with the verdict that follows from its replies."""
    if isinstance(claimed, Panel):  # a panel's common result is not stored
        return _add_advisory(claimed, IMPORTED)
    try:
        concluded = reaggregate(claimed)
    except (ConfigError, ValidationError, LookupError, ValueError, ArithmeticError) as impossible:
        raise ConfigError("circle", f"what was said in it gives no verdict: {impossible}") from None
    then, now = _verdict_of(claimed), _verdict_of(concluded)
    another = f"imported with another verdict ({then}); concluded again: {now}"
    return _add_advisory(concluded, IMPORTED if then == now else another)


def _add_advisory(judged: Judged, mark: str) -> Judged:
    if mark in judged.advisories:
        return judged
    return judged.model_copy(update={"advisories": (*judged.advisories, mark)})


def _verdict_of(result: FireCircleResult) -> str:
    decided = result.consensus
    verdict: str = result.verdict
    if decided:
        verdict += f", F {decided.falsehood:g} by {decided.model} in round {decided.round_number}"
    patterns = ", ".join(
        f"{pattern.pattern_type} {pattern.model_agreement:.2f}" for pattern in result.patterns
    )
    quorum = "" if result.quorum.valid else ", no quorum"
    return f"{verdict}{quorum}; patterns: {patterns or 'none'}"


def _parse(document: Mapping[str, Any]) -> CircleOrPanel:
    shape = Panel if "panel_id" in document else FireCircleResult
    version = document.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise ConfigError(
            None,
            f"written by a newer Fire Circle (schema {version}, this one reads {SCHEMA_VERSION})",
            "upgrade firecircle",
        )
    if (impossible := _impossible_number(document)) is not None:
        raise ConfigError("circle", f"a number that cannot be: {impossible:g}")
    try:
        judged = shape.model_validate(document)
    except ValidationError as invalid:
        raise config_error(invalid, "circle") from None
    require_plausible(judged)
    if not _ID.fullmatch(own_id(judged)):
        raise ConfigError("circle", "its id is not valid")
    return judged


def _impossible_number(document: Any) -> float | None:
    """A number that no circle can have measured; sums and lists would fail on it."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(member for name, member in value.items() if name != "seed")
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, int | float) and not (math.isfinite(value) and abs(value) < _LARGEST_NUMBER):
            return value
    return None


def _result_in(whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """The circle in output of `evaluate --json=full`: by itself, in an error, or in a prompt's metrics."""
    if "dialogue_history" in whole or "panel_id" in whole:
        return whole
    if whole.get("kind") in (VERDICT_KIND, BATCH_KIND):
        raise ConfigError(
            "import",
            "the verdict in short, without what was asked and said",
            "give what `circles export` or `evaluate --json=full` wrote",
        )
    for name in ("partial_result", "fire_circle"):
        if isinstance(held := whole.get(name), dict):
            return held
    raise ConfigError(
        "import", "a result without what was asked and said; only circles and panels can be saved"
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
        raise ConfigError("import", f"a line of more than {LONGEST_LINE:,} bytes; this is not an export")
    return line


def _json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def _text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise ConfigError(name, "not a text")
    return value if value is None else writable(value)


def _add_new(circles: CircleStore, new: Sequence[ImportedCircle], progress: ImportProgress) -> None:
    if not new:
        return
    added = 0
    with circles.database.writing() as connection:
        be_the_only_one(
            connection, IMPORT_LOCK
        )  # otherwise another import of the same circle is not visible yet
        for circle in new:
            if not _is_known(connection, circle.judged, circle.claimed):
                about = {name: getattr(circle, name) for name in _GIVEN}
                add_finished(connection, circle.judged, **about)
                added += 1
    progress.added += added
    progress.known += len(new) - added


def _is_known(connection: Connection, judged: CircleOrPanel, claimed: CircleOrPanel) -> bool:
    """Whether this circle is stored, under its own id or with a number added.

    An earlier version may have saved it as the file has it, with another conclusion.
    """
    own = own_id(judged)
    rows = connection.execute(sa.select(*LISTED).where(id_begins(own))).mappings().all()
    for row in rows:
        summary = summary_of(row)
        if re.fullmatch(rf"{re.escape(own)}(-\d+)?", summary.id):
            try:
                if load_circle(connection, summary) in (judged, claimed):
                    return True
            except StoreError:
                continue
    return False
