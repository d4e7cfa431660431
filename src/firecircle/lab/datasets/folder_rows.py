"""A folder in which every text file is the user text of one prompt.

The label is the name of a folder on the way that the map knows as a label, the family that of the innermost
other folder. `prompt.json` beside `prompt.txt` may hold more fields, and wins over both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from firecircle.lab.datasets.field_map import FieldMap
from firecircle.lab.datasets.record import BadRow, Row
from firecircle.prompt import MAX_LAYER_CHARS

SIDECAR = ".json"
TABLES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
LARGEST_FILE = 4 * MAX_LAYER_CHARS
"""In bytes: no UTF-8 file larger than this holds a text within the limit."""


def folder_rows(folder: Path, field_map: FieldMap) -> Iterator[Row | BadRow]:
    """Every file below the folder, in the order of their names; hidden ones are none of ours."""
    number = 0
    for place, inner, files in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        names = set(files)
        texts = {Path(name).stem for name in files if not name.endswith(SIDECAR)}
        for name in sorted(name for name in files if not name.startswith(".")):
            if name.endswith(SIDECAR) and Path(name).stem in texts:
                continue
            number += 1
            sidecar = Path(name).stem + SIDECAR
            yield _row(
                number,
                Path(place) / name,
                Path(place) / sidecar if sidecar in names else None,
                folder,
                field_map,
            )


def _row(number: int, file: Path, sidecar: Path | None, folder: Path, field_map: FieldMap) -> Row | BadRow:
    name = file.relative_to(folder).as_posix()
    if file.suffix == SIDECAR:
        return BadRow(number, f"{name}: a sidecar without its text file")
    if file.suffix in TABLES:
        return BadRow(number, f"{name}: a table among texts; name the file itself as the dataset")
    try:
        if file.stat().st_size > LARGEST_FILE:
            return BadRow(number, f"{name}: larger than {LARGEST_FILE:,} bytes")
        text = file.read_bytes().decode("utf-8-sig")
        told = _sidecar(sidecar)
    except UnicodeDecodeError:
        return BadRow(number, f"{name}: not UTF-8 text")
    except (ValueError, RecursionError):
        return BadRow(number, f"{name}: its sidecar is not a JSON object")
    except OSError as unreadable:
        return BadRow(number, f"{name}: {unreadable.strerror}")
    if "\0" in text:
        return BadRow(number, f"{name}: not a text file")
    cells: dict[str, object] = {field_map.user or "user": text, field_map.id or "id": name}
    folders = file.relative_to(folder).parts[:-1]
    labels = [part for part in folders if field_map.knows_label(part)]
    families = [part for part in folders if part not in labels]
    if labels and field_map.label is not None:
        cells[field_map.label] = labels[-1]
    if families and field_map.family is not None:
        cells[field_map.family] = families[-1]
    return Row(number, {**cells, **told})


def _sidecar(path: Path | None) -> dict[str, object]:
    if path is None:
        return {}
    if path.stat().st_size > 4 * LARGEST_FILE:
        raise ValueError
    told = json.loads(path.read_bytes())
    if not isinstance(told, dict):
        raise ValueError
    return told
