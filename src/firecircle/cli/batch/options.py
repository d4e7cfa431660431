"""The options that only a batch has: its columns and files, and those of a folder of parts."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal

import typer

from firecircle.cli.columns import FieldOption, LabelMapOption
from firecircle.cli.engines import Engine
from firecircle.errors import ConfigError

FailOn = Literal["alarm", "unsure", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """Which prompts, which of their columns mean what, and where the outcomes go."""

    field: FieldOption = None
    label_map: LabelMapOption = None
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="Keep the batch under this name. Default: the file's name."
        ),
    ] = None
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE|FOLDER",
            help="Write one flat row a prompt: .jsonl, .csv or .parquet, or a folder of Parquet parts.",
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
            help="What makes the exit status 1. Default: alarm, and 3 for prompts that no voice could read.",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOptions:
    """How a corpus of any size is judged into a folder of parts."""

    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=4096, help="Processes. Default: one a core.")
    ] = None
    part_rows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=10_000_000,
            help="Rows in a part, done whole or again. Default: 2000.",
        ),
    ] = None
    escalate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,C", help="Have a circle of these voices judge the uncertain band, within a budget."
        ),
    ] = None
    band: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="Which F is uncertain: from, and below. Default: 0.3 0.7."),
    ] = None
    engine: Engine = "local"
    restart: Annotated[
        bool, typer.Option("--restart", help="Judge everything again, even if the folder has results.")
    ] = False

    def require_folder(self) -> None:
        """Refuse what means nothing where no parts are written."""
        for option in fields(self):
            if getattr(self, option.name) != option.default:
                name = option.name.replace("_", "-")
                raise ConfigError(f"--{name}", "is for a folder of parts", "add --out FOLDER")
