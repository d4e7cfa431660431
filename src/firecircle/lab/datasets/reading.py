"""`read_dataset`: any dataset as a stream of records, in constant memory."""

from __future__ import annotations

import errno
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import get_args

from firecircle.errors import ConfigError
from firecircle.examples import Split, load_examples
from firecircle.lab.datasets.cleaning import ENCODING_GLANCE, Cure, cure_for, foreign_encoding, not_utf8
from firecircle.lab.datasets.record import LAYER_FIELDS, BadRow, FieldMap, MapField, Record, Row
from firecircle.lab.datasets.rows import csv_rows, folder_rows, jsonl_rows, parquet_rows, text_rows
from firecircle.lab.datasets.tools import FORMAT_GLANCE, tool_rows
from firecircle.prompt import EarlierTurn, MultiNeutrosophicPrompt
from firecircle.shapes import writable

CACHE_KIBIBYTES = 16_384


class SeenIds:
    """Digests of ids in a temporary database that SQLite moves to disk as it grows."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY, line INTEGER) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def first_line(self, record_id: str, line: int) -> int | None:
        """The line that already used this id; None if it is new, which is then saved."""
        digest = blake2b(record_id.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        added = self._database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (digest, line))
        if added.rowcount:
            return None
        earlier: tuple[int] = self._database.execute(
            "SELECT line FROM seen WHERE digest = ?", (digest,)
        ).fetchone()
        return earlier[0]

    def close(self) -> None:
        """Close the temporary database."""
        self._database.close()


def record_of(row: Row, field_map: FieldMap, dataset: str) -> Record:
    """The record in this row. A `ConfigError` says what is wrong with it."""
    prompt = MultiNeutrosophicPrompt(
        system=_text(row, field_map, "system") or "",
        application=_text(row, field_map, "application") or "",
        user=_text(row, field_map, "user") or "",
        turns=_turns(_cell(row, field_map, "turns"), field_map),
    )
    prompt.require_text()
    return Record(
        id=_text(row, field_map, "id") or f"{dataset}:{row.line}",
        prompt=prompt,
        label=field_map.label_of(_cell(row, field_map, "label")),
        family=_text(row, field_map, "family"),
        source=_text(row, field_map, "source") or dataset,
        row=row.line,
        group=_text(row, field_map, "group"),
    )


def _cell(row: Row, field_map: FieldMap, field: MapField) -> object:
    name = field_map.name_of(field)
    return None if name is None else row.cells.get(name)


def _text(row: Row, field_map: FieldMap, field: MapField) -> str | None:
    """The text of a cell; None if it is null or empty. An id or family may be a number."""
    value = _cell(row, field_map, field)
    if value is None or isinstance(value, str):
        return writable(value) if value else None
    if field in ("id", "family", "source", "group") and isinstance(value, int | float):
        return str(value)
    raise ConfigError(field_map.name_of(field), f"must be text, not {_kind(value)}")


def _turns(value: object, field_map: FieldMap) -> tuple[EarlierTurn, ...] | None:
    """None if unknown. A table without lists may have them as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else None
        except (ValueError, RecursionError):
            raise ConfigError(field_map.turns, "must be a JSON list of turns") from None
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise ConfigError(field_map.turns, f"must be a list of turns, not {_kind(value)}")
    return tuple(_turn(turn, place, field_map) for place, turn in enumerate(value, 1))


def _turn(turn: object, place: int, field_map: FieldMap) -> EarlierTurn:
    role = turn.get("role") if isinstance(turn, dict) else None
    content = turn.get("content") if isinstance(turn, dict) else None
    if not isinstance(role, str) or not isinstance(content, str):
        raise ConfigError(field_map.turns, f"turn {place} must have role and content, both text")
    return EarlierTurn(role=role, content=content)


def _kind(value: object) -> str:
    return {bool: "a boolean", int: "a number", float: "a number", dict: "an object", list: "a list"}.get(
        type(value), type(value).__name__
    )


BUNDLED = "examples"
ENCODED = "encoded"
KINDS_TOLD = 3
"""For a file without a single good row, how many kinds of reasons the error shows."""
GLANCE = 50
"""Rows read before the first record, to distinguish a wrong field map from a sparse file."""


def read_dataset(
    path: str | Path,
    field_map: FieldMap | None = None,
    on_bad_row: Callable[[BadRow], None] | None = None,
    *,
    name: str | None = None,
    cure_words: Callable[[Cure], str] = Cure.in_plan,
) -> Iterator[Record]:
    """The records of a JSONL, CSV, Parquet or text file, of a folder of texts, or of the bundled `examples`.

    `examples:open` and `examples:held` are its two halves, `examples:encoded` the prompts with a hidden part.
    Fields that the map leaves out have the usual names (`prompt`, `text`, `is_attack`, ...). Records without
    an id are numbered under `name`, by default the name of the file. Bad rows go to `on_bad_row`; without it
    the first one is a `ConfigError`. So are a missing file, an unsuitable field map, and a file without
    records, with a remedy in the words of `cure_words`.
    """
    if isinstance(path, str) and path.partition(":")[0] == BUNDLED:
        return _bundled_records(path)
    file = Path(path)
    names = field_map or FieldMap()
    rows = raw_rows(file, names)
    return _records(rows, names, file, name or file.stem, on_bad_row or _refuse(file), cure_words)


def _bundled_records(name: str) -> Iterator[Record]:
    split = name.partition(":")[2]
    parts = (*get_args(Split), ENCODED)
    if split not in ("", *parts):
        raise ConfigError(
            "dataset",
            f"there is no {name!r}",
            f"the bundled ones are {', '.join((BUNDLED, *(f'{BUNDLED}:{part}' for part in parts)))}",
        )
    return (
        Record(example.id, example.prompt, example.label, example.pattern_type, BUNDLED, number, example.pair)
        for number, example in enumerate(load_examples(), 1)
        if split in ("", example.split) or (split == ENCODED and example.encoding)
    )


def raw_rows(
    path: Path, field_map: FieldMap, skip: int = 0, *, whole: bool = False
) -> Iterator[Row | BadRow]:
    """The rows of a file or folder after the first `skip`, each bad one in its place.

    In JSONL, text and Parquet, skipped rows are not parsed. `whole` rows have every column of the file, not
    only those of a prompt.
    """
    try:
        if path.is_dir():
            return islice(folder_rows(path, field_map), skip, None)
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "not a regular file")  # a pipe cannot be read twice
        with path.open("rb") as file:
            beginning = file.read(FORMAT_GLANCE)
    except OSError as unreadable:
        raise ConfigError("dataset", f"{path}: {unreadable.strerror}", "give a file or a folder") from None
    if path.suffix.lower() != ".parquet" and (encoding := foreign_encoding(beginning[:ENCODING_GLANCE])):
        raise ConfigError(
            "dataset",
            not_utf8(str(path), encoding),
            f"convert it: iconv -f {encoding} -t UTF-8 {path.name} > new{path.suffix}",
        )
    if not whole and (rows := tool_rows(path, beginning)) is not None:
        return islice(rows, skip, None)
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            return jsonl_rows(path, skip)
        case ".csv" | ".tsv":
            return islice(csv_rows(path), skip, None)
        case ".parquet":
            return parquet_rows(path, field_map, skip, whole=whole)
        case ".txt":
            return text_rows(path, skip)
        case ".json":
            raise ConfigError(
                "dataset",
                f"{path}: a .json file that neither promptfoo nor PyRIT writes",
                "give .jsonl, one object per line: jq -c '.[]' turns a list into it",
            )
        case other:
            raise ConfigError(
                "dataset",
                f"{path}: {other or 'a name without an ending'} is not a known format",
                "give .jsonl, .csv, .tsv, .parquet, .txt (one prompt per line) or a folder",
            )


def fitted_map(
    path: Path, field_map: FieldMap | None = None, cure_words: Callable[[Cure], str] = Cure.in_plan
) -> FieldMap:
    """The field map for every row of this file; a `ConfigError` if none fits."""
    names = field_map or FieldMap()
    return _fit_map(list(islice(raw_rows(path, names), GLANCE)), names, path, cure_words)[0]


def _fit_map(
    glance: Sequence[Row | BadRow], field_map: FieldMap, path: Path, cure_words: Callable[[Cure], str]
) -> tuple[FieldMap, str]:
    """The map for these first rows, and a remedy for rows that it does not fit."""
    readable = [row for row in glance if isinstance(row, Row)]
    present = list(dict.fromkeys(name for row in readable for name in row.cells))
    field_map = field_map.fitted_to(present)
    cure = cure_for(readable, field_map)
    advice = cure_words(cure) if cure else ""
    _check_fields(present, field_map, path, advice)
    return field_map, advice


def _records(
    rows: Iterator[Row | BadRow],
    field_map: FieldMap,
    path: Path,
    dataset: str,
    on_bad_row: Callable[[BadRow], None],
    cure_words: Callable[[Cure], str],
) -> Iterator[Record]:
    glance = list(islice(rows, GLANCE))
    field_map, advice = _fit_map(glance, field_map, path, cure_words)
    seen = SeenIds()
    good = bad = 0
    kinds: dict[str, BadRow] = {}
    try:
        for row in chain(glance, rows):
            read = _read(row, field_map, dataset, seen)
            if isinstance(read, Record):
                good += 1
                yield read
            else:
                bad += 1
                if len(kinds) < KINDS_TOLD:
                    kinds.setdefault(_kind_of(read.reason), read)
                on_bad_row(read)
    finally:
        seen.close()
    if not good:
        why = f"all {bad:,} rows are bad" if bad else "it is empty"
        reasons = "".join(f"; row {row.line}: {row.reason.partition('; ')[0]}" for row in kinds.values())
        remedy = advice or "give one with at least one prompt"
        raise ConfigError("dataset", f"{path} has no record, {why}{reasons}", remedy)


def _kind_of(reason: str) -> str:
    """Reasons that differ only in what they quote or count are of one kind."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "", reason)


def read_row(row: Row | BadRow, field_map: FieldMap, dataset: str) -> Record | BadRow:
    """The record of a row, or why it is not one."""
    if isinstance(row, BadRow):
        return row
    try:
        return record_of(row, field_map, dataset)
    except ConfigError as wrong:
        return BadRow(row.line, str(wrong))


def _read(row: Row | BadRow, field_map: FieldMap, dataset: str, seen: SeenIds) -> Record | BadRow:
    record = read_row(row, field_map, dataset)
    if isinstance(record, BadRow):
        return record
    before = seen.first_line(record.id, record.row)
    if before is not None:
        return BadRow(record.row, f"{field_map.id}: {record.id[:60]!r} was already used in row {before}")
    return record


def _check_fields(present: list[str], field_map: FieldMap, path: Path, advice: str) -> None:
    if not present:
        return
    listed = ", ".join(name[:40] for name in present[:20])
    for field in field_map.named_by_user:
        name = field_map.name_of(field) or ""
        if name not in present:
            near = get_close_matches(name, present, n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigError(
                f"FieldMap.{field}", f"{path} has no field {name!r}", f"{meant}its fields are {listed}"
            )
    if not any(field_map.name_of(field) in present for field in LAYER_FIELDS):
        raise ConfigError(
            "FieldMap",
            f"{path} has neither system, application nor user text",
            f"{advice or 'name its field'} (its fields are {listed})",
        )


def _refuse(path: Path) -> Callable[[BadRow], None]:
    def refuse(bad: BadRow) -> None:
        raise ConfigError("dataset", f"{path} row {bad.line}: {bad.reason}")

    return refuse
