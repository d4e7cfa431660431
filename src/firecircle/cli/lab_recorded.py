"""What recorded judgements show, on the screen or as JSON."""

from __future__ import annotations

from firecircle.cli.lab_view import table_console
from firecircle.cli.printable import printable_line
from firecircle.cli.screen import print_json
from firecircle.lab.recorded import RecordedStudy
from firecircle.lab.recorded_view import findings, print_recorded


def show_recorded(study: RecordedStudy, *, as_json: bool) -> None:
    """The study with what it comes to in words."""
    if as_json:
        print_json({**study.model_dump(mode="json"), "findings": findings(study)})
    else:
        print_recorded(table_console(), study, printable_line)
