"""What a dataset hands out: records, and the rows that could not become one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from firecircle.examples import Label
from firecircle.prompt import MultiNeutrosophicPrompt

__all__ = ["BadRow", "BadRows", "Label", "Record", "Row"]

KEPT_BAD_ROWS = 100
"""Enough to see what is wrong with a file; the count goes on beyond it."""


@dataclass(frozen=True, slots=True)
class Record:
    """One prompt to judge, with what is known of it."""

    id: str
    prompt: MultiNeutrosophicPrompt
    label: Label | None
    """None when nobody said, or when the label stands for neither."""
    family: str | None
    source: str
    """Where the prompt was first published, or the name of the dataset."""
    row: int
    """The line of the file, the row of the table or the number of the file in its folder, from 1."""
    group: str | None = None
    """What it shares with prompts that must not be learnt from when it is tested, such as a benign twin."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no record, and why. `line` counts like `Record.row`."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row as the file has it, before the field map says what its cells mean."""

    line: int
    cells: Mapping[str, object]


@dataclass(slots=True)
class BadRows:
    """Counts every bad row and keeps the first ones; give it to `read_dataset` as `on_bad_row`."""

    count: int = 0
    first: list[BadRow] = field(default_factory=list)

    def __call__(self, bad: BadRow) -> None:
        """Take note of one more."""
        self.count += 1
        if len(self.first) < KEPT_BAD_ROWS:
            self.first.append(bad)
