"""The prompts of a batch: read whole before anybody is asked, each row that is no prompt in its place."""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from firecircle.errors import ConfigError
from firecircle.lab.datasets import BadRow, FieldMap, Record, read_dataset
from firecircle.lab.datasets.cleaning import ENCODING_GLANCE, Cure, foreign_encoding, not_utf8
from firecircle.lab.datasets.record import USUAL_NAMES
from firecircle.lab.datasets.rows import SEPARATORS, TABLES
from firecircle.lab.datasets.tools import plugin_reads
from firecircle.prompt import MultiNeutrosophicPrompt

STANDARD_INPUT = "-"
FORMATS = (*TABLES, ".txt", ".json")


MOST_ROWS, MOST_CHARACTERS = 1_000_000, 500_000_000
"""Of one batch, whose rows are all in memory."""
LARGEST_INPUT = 500_000_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Records and bad rows in the order of the file."""

    name: str
    source: str
    """The file or folder as the user wrote it."""
    rows: tuple[Record | BadRow, ...]

    @property
    def records(self) -> list[Record]:
        """The rows that can be judged."""
        return [row for row in self.rows if isinstance(row, Record)]

    def kept_as(self, record: Record) -> str:
        """What the store knows this prompt by."""
        begins = f"{self.name}:"
        return record.id if record.id.startswith(begins) else begins + record.id


def read_batch(source: str, field_map: FieldMap, name: str | None, shared: MultiNeutrosophicPrompt) -> Batch:
    """All rows of the batch. Prompts without a system text, application text or turns of their own get those
    that are shared."""
    rows: list[Record | BadRow] = []
    with ExitStack() as opened:
        path = _spool(field_map, opened) if source == STANDARD_INPUT else Path(source)
        batch_name = name or ("stdin" if source == STANDARD_INPUT else path.resolve().stem)
        try:
            records = read_dataset(
                _recognise(path), field_map, rows.append, name=batch_name, cure_words=Cure.in_options
            )
            size = 0
            for record in records:
                rows.append(record.completed(shared))
                size += sum(len(layer.text) for layer in record.prompt.layers)
                if len(rows) > MOST_ROWS or size > MOST_CHARACTERS:
                    raise ConfigError(
                        "dataset",
                        f"{source} has more than {MOST_ROWS:,} rows or {MOST_CHARACTERS:,} characters",
                        "--out FOLDER takes any number",
                    )
        except ConfigError as wrong:
            field = wrong.field or ""
            raise wrong.renamed("--field" if field.startswith("FieldMap") else "FILE") from None
    return Batch(batch_name, source, tuple(rows))


def _recognise(path: Path) -> Path:
    """The file itself; one whose name does not tell its format is refused with the way to read it."""
    if path.is_file() and path.suffix.lower() not in FORMATS and not plugin_reads(path):
        raise ConfigError(
            "FILE",
            f"{path}: its ending does not say what is in it",
            "rename it to .jsonl, .csv or .txt (one prompt per line), or pipe it: firecircle batch - < FILE",
        )
    return path


def _spool(field_map: FieldMap, opened: ExitStack) -> Path:
    """Standard input as a file with the ending that its beginning tells."""
    if sys.stdin is None or sys.stdin.isatty():
        raise ConfigError("FILE", "nothing comes in on standard input", "name a file, or pipe one in")
    data = sys.stdin.buffer.read(LARGEST_INPUT + 1)
    if len(data) > LARGEST_INPUT:
        raise ConfigError("FILE", f"standard input has more than {LARGEST_INPUT:,} bytes", "name a file")
    if encoding := foreign_encoding(data[:ENCODING_GLANCE]):
        raise ConfigError(
            "FILE",
            not_utf8("standard input", encoding),
            f"pipe it through iconv -f {encoding} -t UTF-8",
        )
    folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="firecircle-batch-"))
    path = Path(folder) / f"stdin{_ending(data, field_map)}"
    path.write_bytes(data)
    return path


def _ending(data: bytes, field_map: FieldMap) -> str:
    if data.startswith(b"PAR1"):
        return ".parquet"
    first = next((line for line in data.splitlines() if line.strip()), b"").decode("utf-8-sig", "replace")
    return ending_of_records(first, field_map) or ".txt"


def ending_of_records(first_line: str, field_map: FieldMap | None = None) -> str | None:
    """`.jsonl` or `.csv` if a text that begins with this line holds records; None for plain text."""
    try:
        if isinstance(json.loads(first_line), dict):
            return ".jsonl"
    except (ValueError, RecursionError):
        pass
    separator = max(SEPARATORS, key=first_line.count)
    header = {name.strip().casefold() for name in next(csv.reader([first_line], delimiter=separator), [])}
    names = {usual for usual_names in USUAL_NAMES.values() for usual in usual_names}
    if field_map is not None:
        names |= {(field_map.name_of(field) or "").casefold() for field in field_map.named_by_user}
    return ".csv" if header & names else None


def look_like_records(path: str, lines: Sequence[str]) -> bool:
    """Whether the lines of a file that is not blank are records rather than one text."""
    if len(lines) < 2:
        return False
    if Path(path).suffix.lower() in (".jsonl", ".ndjson", ".csv", ".tsv"):
        return True
    ending = ending_of_records(lines[0])
    has_columns = any(separator in lines[0] for separator in SEPARATORS)
    if ending == ".csv":
        return has_columns
    return ending is not None and ending_of_records(lines[1]) == ending
