"""Rows of a JSONL file, one line at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from firecircle.lab.datasets.record import BadRow, Row
from firecircle.prompt import MAX_LAYER_CHARS

LONGEST_LINE = 4 * 12 * MAX_LAYER_CHARS
"""Four layers at their limit, each character written as a pair of \\u escapes."""


def jsonl_rows(path: Path) -> Iterator[Row | BadRow]:
    """Every line that is not blank, with its number."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                _skip_rest_of_line(file)
                yield BadRow(number, f"the line is longer than {LONGEST_LINE:,} bytes")
            elif line.strip():
                yield _row(number, line)


def _skip_rest_of_line(file: BinaryIO) -> None:
    while (more := file.readline(LONGEST_LINE)) and not more.endswith(b"\n"):
        pass


def _row(number: int, line: bytes) -> Row | BadRow:
    try:
        cells = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        return BadRow(number, "the line is not UTF-8")
    except json.JSONDecodeError as broken:
        return BadRow(number, f"the line is not JSON: {broken.msg} at character {broken.colno}")
    except (ValueError, RecursionError):
        return BadRow(number, "the line is JSON too deep or too large to read")
    if not isinstance(cells, dict):
        return BadRow(number, "the line is not a JSON object")
    return Row(number, cells)
