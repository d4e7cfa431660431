"""The files of a corpus, their rows from any place on, and the folder that holds its shards."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from firecircle.circle.columns import IN_PARQUET, columns_of
from firecircle.circle.config import FireCircleConfig
from firecircle.engine.journal import exclusive_lock
from firecircle.errors import ConfigError
from firecircle.files import read_regular, write_whole
from firecircle.lab.datasets import BadRow, FieldMap, Record
from firecircle.lab.datasets.cleaning import Cure
from firecircle.lab.datasets.reading import fitted_map, raw_rows, read_row
from firecircle.lab.datasets.record import Row
from firecircle.lab.datasets.rows import TABLES
from firecircle.lab.records import LARGEST_NOTE
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text

LINED = (".jsonl", ".ndjson", ".csv", ".tsv", ".txt")
"""Files that have no more rows than lines."""
CHUNK = 1 << 20
WHOLE = 1 << 30
"""Bytes up to which the digest of a file is of all of it; of a larger one, of samples, size and time."""
SAMPLES = 64


class CorpusFile(Shape):
    """One file of the corpus, or a folder of texts."""

    path: Text
    digest: Text
    rows: int | None
    """About how many rows it has, if that is quickly told."""
    most_rows: int | None
    """How many it has at most, if that is sure."""
    field_map: FieldMap
    """As it fits this file."""

    @property
    def dataset(self) -> str:
        """What rows without an id are numbered under."""
        return Path(self.path).stem


def find_files(patterns: Iterable[str]) -> tuple[Path, ...]:
    """The files that paths, folders and globs stand for, each once, in a fixed order.

    A folder stands for its tables; without any it is one of texts.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = Path(pattern)
        if path.is_dir():
            tables = sorted(
                Path(place) / name
                for place, _, names in os.walk(path)
                for name in names
                if Path(name).suffix.lower() in TABLES and not name.startswith(".")
            )
            found.update(dict.fromkeys(tables or [path]))
        elif path.exists() or not has_magic(pattern):
            found[path] = None
        elif matching := sorted(glob(pattern, recursive=True)):
            found.update(dict.fromkeys(Path(name) for name in matching if Path(name).is_file()))
        else:
            raise ConfigError("CORPUS", f"no file matches {pattern}", "mind the quotes around a glob")
    if not found:
        raise ConfigError("CORPUS", "it has no file", "give .parquet, .jsonl, .csv, .txt or a folder")
    return tuple(found)


def look_at(
    paths: Iterable[Path], field_map: FieldMap, on_bytes: Callable[[int], None] = lambda read: None
) -> tuple[CorpusFile, ...]:
    """Every file with its digest and the columns recognised in it; `on_bytes` gets how far it is.

    A file that cannot be read at all is a `ConfigError`: better now than in the middle.
    """
    files: list[CorpusFile] = []
    read = 0
    for path in paths:
        try:
            fitted = fitted_map(path, field_map, Cure.in_options)
            digest, rows, most = _digest(path, lambda more: on_bytes(read + more))  # noqa: B023 - called at once
            read += path.stat().st_size
        except ConfigError as wrong:
            raise wrong.renamed(
                "--field" if (wrong.field or "").startswith("FieldMap") else "CORPUS"
            ) from None
        except OSError as unreadable:
            raise ConfigError("CORPUS", f"{path}: {unreadable.strerror}") from None
        files.append(
            CorpusFile(path=str(path.resolve()), digest=digest, rows=rows, most_rows=most, field_map=fitted)
        )
    return tuple(files)


def _digest(path: Path, on_bytes: Callable[[int], None]) -> tuple[str, int | None, int | None]:
    """What tells whether a file is still the same, about how many rows it has, and how many at most."""
    digest = hashlib.blake2b(digest_size=16)
    if path.is_dir():
        files = sorted(Path(place) / name for place, _, names in os.walk(path) for name in names)
        for file in files:
            digest.update(f"{file.relative_to(path)}\0".encode("utf-8", "surrogateescape"))
            digest.update(_digest(file, on_bytes)[0].encode())
        return digest.hexdigest(), len(files), len(files)
    about = path.stat()
    lines = 0
    with path.open("rb") as opened:
        if about.st_size <= WHOLE:
            while chunk := opened.read(CHUNK):
                digest.update(chunk)
                lines += chunk.count(b"\n")
                on_bytes(opened.tell())
        else:
            digest.update(f"{about.st_size}/{about.st_mtime_ns}".encode())
            for number in range(SAMPLES):
                opened.seek(number * (about.st_size - CHUNK) // (SAMPLES - 1))
                chunk = opened.read(CHUNK)
                digest.update(chunk)
                lines += chunk.count(b"\n")
            lines = lines * about.st_size // (SAMPLES * CHUNK)
    ending = path.suffix.lower()
    if ending == ".parquet":
        rows = _parquet_rows(path)
        return digest.hexdigest(), rows, rows
    if ending not in LINED:
        return digest.hexdigest(), None, None
    about_rows = max(0, lines - (ending in (".csv", ".tsv")))
    return digest.hexdigest(), about_rows, lines + 1 if about.st_size <= WHOLE else None


def _parquet_rows(path: Path) -> int | None:
    import duckdb

    try:
        with duckdb.connect() as database:
            asked = database.execute("SELECT sum(num_rows) FROM parquet_file_metadata(?)", [str(path)])
            row = asked.fetchone()
            return int(row[0]) if row else None
    except duckdb.Error:
        return None


@dataclass(slots=True)
class FileCursor:
    """Rows of one file, read forward; going back opens it anew."""

    file: CorpusFile
    _rows: Iterator[Row | BadRow] | None = None
    _at: int = 0

    def take(self, start: int, count: int) -> list[Record | BadRow]:
        """Up to so many rows from this one on, fewer at the end. `ConfigError` if the file breaks off."""
        if self._rows is None or start < self._at:
            self._rows = raw_rows(Path(self.file.path), self.file.field_map, start)
        else:
            next(islice(self._rows, start - self._at, start - self._at), None)
        rows = [read_row(row, self.file.field_map, self.file.dataset) for row in islice(self._rows, count)]
        self._at = start + len(rows)
        return rows


ABOUT = "scan.json"
SHARD_NAME = re.compile(r"(\d{5})-(\d{6})\.parquet")


class About(Shape):
    """What a scan was begun with."""

    format: int = 1
    firecircle: Text
    files: tuple[CorpusFile, ...]
    shard_rows: int
    circle: dict[str, Any]
    """The settings of the circle."""
    shared: MultiNeutrosophicPrompt


class ScanFolder:
    """A scan on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shards = path / "shards"
        self.summary, self.summary_text, self.top = (
            path / name for name in ("summary.json", "summary.txt", "top.jsonl")
        )
        self.escalation, self.escalated = path / "escalation", path / "escalated.parquet"

    def begin(
        self,
        files: tuple[CorpusFile, ...],
        config: FireCircleConfig,
        shared: MultiNeutrosophicPrompt,
        shard_rows: int,
        *,
        restart: bool = False,
    ) -> str | None:
        """Make the folder, or find that it holds this very scan; a note for the user, if there is one."""
        now = About(
            firecircle=version("firecircle"),
            files=files,
            shard_rows=shard_rows,
            circle=config.model_dump(mode="json", exclude={"api_key"}),
            shared=shared,
        )
        then = self._about()
        if then is not None and not restart:
            self._require_same(then, now)
            if then.firecircle != now.firecircle:
                begun = f"begun with firecircle {then.firecircle}, going on with {now.firecircle}"
                return f"{begun}: what is said may differ"
            return None
        if then is None and self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise ConfigError(
                "--out", f"{self.path} is neither empty nor a batch in parts", "name another folder"
            )
        try:
            self.shards.mkdir(parents=True, exist_ok=True)
            for _, shard in self._on_disk():
                shard.unlink()
            write_whole(self.path / ABOUT, now.model_dump_json(indent=1))
        except OSError as unwritable:
            raise ConfigError("--out", f"{self.path}: {unwritable.strerror}", "name another folder") from None
        return None

    def _about(self) -> About | None:
        try:
            return About.model_validate_json(read_regular(self.path / ABOUT, LARGEST_NOTE))
        except OSError:
            return None
        except ValidationError:
            raise ConfigError(
                "--out",
                f"{self.path / ABOUT} cannot be read",
                "--restart begins again, or name another folder",
            ) from None

    def _require_same(self, then: About, now: About) -> None:
        """Half a table about something else would be worse than none."""
        changes = [
            f"{name} was {_show(then.circle.get(name))} and is {_show(now.circle.get(name))}"
            for name in now.circle
            if then.circle.get(name) != now.circle.get(name)
        ]
        if then.shard_rows != now.shard_rows:
            changes.append(f"--part-rows was {then.shard_rows} and is {now.shard_rows}")
        if then.shared != now.shared:
            changes.append("the shared layers are others")
        changes += _changed_files(then.files, now.files)
        if changes:
            more = f" (and {len(changes) - 1} more)" if len(changes) > 1 else ""
            raise ConfigError(
                "--out",
                f"{self.path} holds another batch: {changes[0]}{more}",
                "name another folder, or add --restart to judge everything again",
            )

    def _on_disk(self) -> Iterator[tuple[tuple[int, int], Path]]:
        for path in self.shards.iterdir():
            if match := SHARD_NAME.fullmatch(path.name):
                yield (int(match[1]), int(match[2])), path

    def finished(self) -> dict[tuple[int, int], Path]:
        """The shards that are on disk, by file and number."""
        return dict(sorted(self._on_disk()))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the scan: two processes would judge the same rows. A killed process lets go of it."""
        busy = ConfigError("--out", f"{self.path} is being judged into by another process")
        with exclusive_lock(self.path / ".lock", busy):
            yield


def _changed_files(then: tuple[CorpusFile, ...], now: tuple[CorpusFile, ...]) -> list[str]:
    before, after = ({file.path: file for file in files} for files in (then, now))
    changes = [f"{path} is new" for path in after if path not in before]
    changes += [f"{path} is gone" for path in before if path not in after]
    for path in after:
        if path not in before:
            continue
        if after[path].digest != before[path].digest:
            changes.append(f"{path} has changed")
        elif after[path].field_map != before[path].field_map:
            changes.append(f"the columns of {path} are read otherwise")
    if not changes and list(before) != list(after):
        changes.append("the files come in another order")
    return changes


def _show(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


COLUMNS = {
    "file": "VARCHAR",
    "row": "BIGINT",
    "id": "VARCHAR",
    "label": "VARCHAR",
    **{column.name: IN_PARQUET[column.kind] for column in columns_of("scan")},
    "patterns": "VARCHAR[]",
    "quotes": "STRUCT(pattern VARCHAR, layer VARCHAR, quote VARCHAR)[]",
    "unread": "VARCHAR[]",
    "error": "VARCHAR",
    "text": "VARCHAR",
}
"""The columns of a shard with their DuckDB types. `text` is the beginning of what was judged."""
