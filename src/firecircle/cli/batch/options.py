"""The options that only a batch has."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal

import typer

from firecircle.cli.columns import FieldOption, LabelMapOption
from firecircle.errors import ConfigError

FailOn = Literal["alarm", "unsure", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """Which prompts, which of their columns mean what, and where the outcomes go."""

    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="FILE|DIR|-",
            help="Judge many prompts: JSONL, CSV, Parquet, text (one a line), a folder of texts, or standard"
            " input. --system, --application and --turns are shared by all that have none of their own.",
        ),
    ] = None
    field: FieldOption = None
    label_map: LabelMapOption = None
    batch_name: Annotated[
        str | None,
        typer.Option(
            "--batch-name", metavar="NAME", help="Keep the batch under this name. Default: the file's name."
        ),
    ] = None
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write one flat row a prompt of the batch: .jsonl, .csv or .parquet.",
        ),
    ] = None
    raw_csv: Annotated[
        bool,
        typer.Option(
            "--raw-csv",
            help="Write texts to .csv as they are. By default a ' precedes those that a spreadsheet would run"
            " as a formula.",
        ),
    ] = False
    junit: Annotated[
        str | None,
        typer.Option(
            "--junit", metavar="FILE", help="Write the batch as JUnit XML: what fails is a failure."
        ),
    ] = None
    sarif: Annotated[
        str | None,
        typer.Option(
            "--sarif", metavar="FILE", help="Write alarms and unsure verdicts of the batch as SARIF."
        ),
    ] = None
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on",
            help="What in a batch makes the exit status 1. Default: alarm, and 3 for what nobody could read.",
        ),
    ] = None
    at_once: Annotated[
        int | None,
        typer.Option(
            "--at-once",
            metavar="N",
            min=1,
            max=500,
            help="Prompts of the batch under way at the same time. Default: 16 for hosted voices, else 8.",
        ),
    ] = None
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print only the summary of the batch, no line a prompt.")
    ] = False

    def require_batch(self) -> None:
        """Refuse what means nothing without a batch."""
        for option in fields(self):
            if getattr(self, option.name):
                name = option.name.replace("_", "-")
                raise ConfigError(f"--{name}", "belongs to a batch", "add --batch FILE")
