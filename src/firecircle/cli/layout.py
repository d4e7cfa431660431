"""How a report is laid out: a label at the left, what it has to say beside it, wrapped to the width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

LABEL_WIDTH = 10
HANG = 2
"""How far the rest of a wrapped line stands in from its beginning."""


@dataclass(frozen=True, slots=True)
class Line:
    """One paragraph of a section, indented by so many steps."""

    text: Text
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """A label and its paragraphs."""

    label: str
    lines: Sequence[Line]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The paragraphs beside the label, without blanks at the line ends."""
        label = self.label
        for line in self.lines:
            for row in _rows(line, console, options.max_width - LABEL_WIDTH):
                yield Text().append(label.ljust(LABEL_WIDTH), style="bold").append_text(row)
                label = ""


def section(label: str, lines: Sequence[str | Line]) -> Iterator[Section]:
    """The section, or nothing if there is nothing to say."""
    if lines:
        yield Section(label, [line if isinstance(line, Line) else Line(Text(line)) for line in lines])


def counted(count: int, thing: str) -> str:
    """A number with its noun."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _rows(line: Line, console: Console, width: int) -> Iterator[Text]:
    before = 2 * line.indent
    for place, row in enumerate(line.text.wrap(console, max(10, width - before - HANG))):
        row.rstrip()
        yield Text(" " * (before + (HANG if place else 0))).append_text(row)
