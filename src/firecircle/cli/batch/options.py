"""The options of `firecircle batch`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.lab.datasets import FieldMap
    from firecircle.lab.runs.judging import Clusters


def is_folder(out: str) -> bool:
    """A path without an ending, or a folder that is there."""
    return Path(out).is_dir() or out.endswith("/") or (bool(out.strip()) and not Path(out).suffix)


FailOn = Literal["alarm", "unsure", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """Which prompts, which of their columns mean what, and where the outcomes go."""

    field: FieldOption = None
    label_map: LabelMapOption = None
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the batch. Default: the file's name."),
    ] = None
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE|FOLDER",
            help="Write one flat row per prompt: .jsonl, .csv or .parquet, or a folder of Parquet parts.",
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
        bool, typer.Option("--quiet", help="Print only the summary of the batch, without a line per prompt.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOptions:
    """How a corpus of any size is judged into a folder of parts."""

    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=4096, help="Number of processes. Default: one per core."),
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


LABELS = ("attack", "benign", "unlabelled")
FieldOption = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="FIELD=COLUMN",
        help="Column of the file for each field, such as user=Frage; turns= if it has none. Repeatable.",
    ),
]
LabelMapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--label-map",
        metavar="VALUE=LABEL",
        help="What a label of the file means, such as phishing=attack or ok=benign; repeat for more.",
    ),
]


def field_map_of(written: Sequence[str], labels: Sequence[str]) -> FieldMap:
    """The field map that `--field` and `--label-map` say."""
    from firecircle.lab.datasets import FieldMap
    from firecircle.lab.datasets.record import MAP_FIELDS

    names = dict(_pair(pair, "--field", "user=COLUMN", may_be_empty=True) for pair in written)
    for field in names:
        if field not in MAP_FIELDS:
            raise ConfigError(
                "--field", f"there is no field {field!r}", f"it is one of {', '.join(MAP_FIELDS)}"
            )
    listed: dict[str, Any] = {}
    usual = FieldMap()
    for value, label in (_pair(pair, "--label-map", "VALUE=attack") for pair in labels):
        if label not in LABELS:
            raise ConfigError(
                "--label-map",
                f"{label!r} is not a label",
                f"it is one of {', '.join(LABELS)}; repeat the option for more",
            )
        listed[label] = (*listed.get(label, getattr(usual, label)), value)
    try:
        return FieldMap(**names, **listed)
    except ConfigError as wrong:
        raise wrong.renamed("--label-map") from None


def _pair(written: str, option: str, example: str, *, may_be_empty: bool = False) -> tuple[str, str]:
    """Both sides of a pair. A field may be said to have no column: `turns=`."""
    left, equals, right = written.partition("=")
    if not (equals and left.strip() and (may_be_empty or right.strip())):
        raise ConfigError(option, f"{written!r} is not a pair", f"write {option} {example}")
    return left.strip(), right.strip()


Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="local|ray|ray:ADDRESS",
        help="Processes on this machine, or the workers of a Ray cluster (extra `ray`): its address, such as"
        " ray:10.0.0.1:6379 or ray:auto; without one, a Ray of its own on this machine.",
    ),
]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What the option says."""

    engine: str = "local"

    def __post_init__(self) -> None:
        """Refuse an engine that is not known before anything is read."""
        name, colon, address = self.engine.partition(":")
        if name not in ("local", "ray") or (colon and (name == "local" or not address)):
            raise ConfigError(
                "--engine", f"{self.engine!r} is not an engine", "write local, ray or ray:ADDRESS"
            )

    @property
    def address(self) -> str | None:
        """The cluster's, if there is one already."""
        return self.engine.partition(":")[2] or None

    @property
    def is_ray(self) -> bool:
        """Whether Ray does the work. A `ConfigError` if the installation does not allow it."""
        if self.engine == "local":
            return False
        from firecircle.lab.cluster import require_ray

        require_ray()
        return True

    def clusters(self, workers: int) -> Clusters | None:
        """What opens the cluster of a run; None for this machine."""
        if not self.is_ray:
            return None
        from functools import partial

        from firecircle.lab.cluster import ray_workers

        return partial(ray_workers, workers=workers, address=self.address)
