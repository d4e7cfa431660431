"""The report of a run on the command line: written to disk, and what it shows told in sentences."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from firecircle.cli.printable import printable_line
from firecircle.cli.screen import console_on, print_json, print_line

if TYPE_CHECKING:
    from firecircle.lab.report import Written
    from firecircle.lab.runs import RunFolder

MARKS = {"gain": "+", "loss": "-", "warning": "!", "plain": " "}
"""Before a sentence: it shows a gain, no gain, or calls for care."""


def report_on(folder: RunFolder, out: Path | None, *, as_json: bool) -> int:
    """Write the report and tell it."""
    if as_json:
        print_json({"run_id": folder.about.run_id, **report_data(folder, out)})
    else:
        _tell(_written(folder, out))
    return 0


def _written(folder: RunFolder, out: Path | None) -> Written:
    from firecircle.lab.report import write_report

    folder.require_finished()
    return asyncio.run(write_report(folder, out))


def report_data(folder: RunFolder, out: Path | None = None) -> dict[str, object]:
    """Write the report; where it is and what it says, for `--json`."""
    written = _written(folder, out)
    files = {field: str(getattr(written, field)) for field in ("page", "figures", "records")}
    return {
        **files,
        "pictures": [str(one) for one in written.pictures],
        "sentences": [one.model_dump(mode="json") for one in written.sentences],
    }


def _tell(written: Written) -> None:
    console = console_on(sys.stdout)
    width = console.width if console.is_terminal else 10_000
    for one in written.sentences:
        line = f"{MARKS[one.tone]} {printable_line(one.text)}"
        print_line(console, textwrap.fill(line, width, subsequent_indent="  ", break_on_hyphens=False))
    print_line(console, f"\nreport: {printable_line(str(written.page))}")
