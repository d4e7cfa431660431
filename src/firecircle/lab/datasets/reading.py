"""`read_dataset`: any dataset as a stream of records, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import get_args

from firecircle.errors import ConfigError
from firecircle.examples import Split, load_examples
from firecircle.lab.datasets.building import record_of
from firecircle.lab.datasets.csv_rows import csv_rows
from firecircle.lab.datasets.field_map import LAYER_FIELDS, FieldMap
from firecircle.lab.datasets.folder_rows import folder_rows
from firecircle.lab.datasets.jsonl_rows import jsonl_rows
from firecircle.lab.datasets.parquet_rows import parquet_rows
from firecircle.lab.datasets.record import BadRow, Record, Row
from firecircle.lab.datasets.seen_ids import SeenIds

BUNDLED = "examples"
ENCODED = "encoded"
GLANCE = 50
"""Rows looked at before the first record, to tell a wrong field map from a sparse file."""


def read_dataset(
    path: str | Path,
    field_map: FieldMap | None = None,
    on_bad_row: Callable[[BadRow], None] | None = None,
) -> Iterator[Record]:
    """The records of a JSONL, CSV or Parquet file, of a folder of texts, or of the bundled `examples`.

    `examples:open` and `examples:held` are its two halves, `examples:encoded` the prompts with a hidden part.
    Bad rows go to `on_bad_row`; without it the first one is a `ConfigError`. So are a missing file, a field
    map that does not fit, and no record at all.
    """
    if isinstance(path, str) and path.partition(":")[0] == BUNDLED:
        return _bundled(path)
    file = Path(path)
    names = field_map or FieldMap()
    return _records(_rows(file, names), names, file, on_bad_row or _refuse(file))


def _bundled(name: str) -> Iterator[Record]:
    split = name.partition(":")[2]
    parts = (*get_args(Split), ENCODED)
    if split not in ("", *parts):
        raise ConfigError(
            f"dataset: there is no {name!r}; the bundled ones are"
            f" {', '.join((BUNDLED, *(f'{BUNDLED}:{part}' for part in parts)))}"
        )
    return (
        Record(example.id, example.prompt, example.label, example.pattern_type, BUNDLED, number, example.pair)
        for number, example in enumerate(load_examples(), 1)
        if split in ("", example.split) or (split == ENCODED and example.encoding)
    )


def _rows(path: Path, field_map: FieldMap) -> Iterator[Row | BadRow]:
    try:
        if path.is_dir():
            return folder_rows(path, field_map)
        with path.open("rb"):
            pass
    except OSError as unreadable:
        raise ConfigError(f"dataset: {path}: {unreadable.strerror}; give a file or a folder") from None
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            return jsonl_rows(path)
        case ".csv" | ".tsv":
            return csv_rows(path)
        case ".parquet":
            return parquet_rows(path, field_map)
        case other:
            raise ConfigError(
                f"dataset: {path}: {other or 'a name without an ending'} is no format known here;"
                " give .jsonl, .csv, .tsv, .parquet or a folder"
            )


def _records(
    rows: Iterator[Row | BadRow], field_map: FieldMap, path: Path, on_bad_row: Callable[[BadRow], None]
) -> Iterator[Record]:
    glance = list(islice(rows, GLANCE))
    _check_fields([row for row in glance if isinstance(row, Row)], field_map, path)
    seen = SeenIds()
    good = bad = 0
    try:
        for row in chain(glance, rows):
            read = _read(row, field_map, path.stem, seen)
            if isinstance(read, Record):
                good += 1
                yield read
            else:
                bad += 1
                on_bad_row(read)
    finally:
        seen.close()
    if not good:
        found = f"all {bad:,} rows are bad" if bad else "it is empty"
        raise ConfigError(f"dataset: {path} holds no record, {found}; give one with at least one prompt")


def _read(row: Row | BadRow, field_map: FieldMap, dataset: str, seen: SeenIds) -> Record | BadRow:
    if isinstance(row, BadRow):
        return row
    try:
        record = record_of(row, field_map, dataset)
    except ConfigError as wrong:
        return BadRow(row.line, str(wrong))
    before = seen.first_line(record.id, row.line)
    if before is not None:
        return BadRow(row.line, f"{field_map.id}: {record.id[:60]!r} was already used in row {before}")
    return record


def _check_fields(glance: list[Row], field_map: FieldMap, path: Path) -> None:
    present = list(dict.fromkeys(name for row in glance for name in row.cells))
    if not present:
        return
    listed = ", ".join(name[:40] for name in present[:20])
    for field in field_map.named_by_user:
        name = field_map.name_of(field) or ""
        if name not in present:
            near = get_close_matches(name, present, n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigError(
                f"FieldMap.{field}: {path} has no field {name!r}; {meant}its fields are {listed}"
            )
    if not any(field_map.name_of(field) in present for field in LAYER_FIELDS):
        raise ConfigError(
            f"FieldMap: {path} has neither system, application nor user text;"
            f' say which field holds it, such as user = "{present[0][:40]}" (its fields are {listed})'
        )


def _refuse(path: Path) -> Callable[[BadRow], None]:
    def refuse(bad: BadRow) -> None:
        raise ConfigError(f"dataset: {path} row {bad.line}: {bad.reason}")

    return refuse
