"""`firecircle lab`: experiments that tell whether the dialogue pays."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.batch.options import Engine, EngineOptions, FieldOption, LabelMapOption
from firecircle.cli.options import AsJson, names_in, with_options
from firecircle.cli.trouble import require_lab
from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.lab.datasets import FieldMap
    from firecircle.lab.plan import Plan
    from firecircle.lab.statistics.estimate import Estimate

Save = Annotated[
    bool | None,
    typer.Option(
        "--save/--no-save",
        help="Keep its circles in the store. Default: hosted and local ones, while they run; --save keeps"
        " those of embedded voices, too, at the end.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a plan is carried out, whoever wrote it."""

    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FOLDER", help="Folder of the run [default: next to the other runs]."),
    ] = None
    new: Annotated[
        bool, typer.Option("--new", help="Start again even if a run of this plan was not finished.")
    ] = False
    save: Save = None
    engine: Engine = "local"
    as_json: AsJson = False


def init(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to write the plan.")],
    as_json: AsJson = False,
) -> int:
    """Write a plan to start from, every key explained."""
    from firecircle.cli.output import print_json
    from firecircle.lab.studies import starting_plan

    path = Path(file)
    try:
        with path.open("x", encoding="utf-8") as new:
            new.write(starting_plan())
    except FileExistsError:
        raise ConfigError("FILE", f"{path} is already there", "name another, or delete it") from None
    except OSError as unwritable:
        raise ConfigError("FILE", f"cannot write {path}: {unwritable.strerror}") from None
    if as_json:
        print_json({"written": str(path)})
    else:
        print(f"written; next: firecircle lab run {path} --dry-run")
    return 0


@with_options(RunOptions)
def run(
    plan: Annotated[
        str,
        typer.Argument(
            metavar="PLAN|RUN",
            help="A plan, as `lab init` writes one, or a run to go on with: its id, the beginning of it, its"
            " folder, or `last`.",
        ),
    ],
    *,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Judge once more what failed, such as during an outage.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print calls, tokens, price and time of each arm; spend nothing."),
    ] = False,
    given: RunOptions,
) -> int:
    """Run a plan, or continue its unfinished run. Exit status 0: all done, 1: stopped by the budget.

    The same command after a crash, a kill or Ctrl-C goes on: no record is lost, no finished call is paid
    twice. A run belongs to its plan by everything but budget and concurrency; with anything else changed, a
    new run begins.
    """
    require_lab("lab", "duckdb")
    from firecircle.lab.plan import read_plan

    path = Path(plan)
    if not path.is_file() and path.suffix != ".toml":
        return _go_on(plan, given, retry_failed=retry_failed, dry_run=dry_run)
    read, text = read_plan(path)
    if dry_run:
        import asyncio

        from firecircle.cli.lab.running import show_estimate
        from firecircle.lab.estimate import estimate

        show_estimate(asyncio.run(estimate(read, path.parent)), read, as_json=given.as_json)
        return 0
    return _run_plan(read, text, path.parent, given, retry_failed=retry_failed)


def _go_on(name: str, given: RunOptions, *, retry_failed: bool, dry_run: bool) -> int:
    from firecircle.cli.lab.running import carry_out
    from firecircle.lab.runs.folder import find_run

    for option, is_given in (("--out", given.out), ("--new", given.new), ("--dry-run", dry_run)):
        if is_given:
            raise ConfigError(option, f"{name} is a run, which goes on where it is", "name its plan instead")
    return carry_out(
        find_run(name),
        save=given.save,
        as_json=given.as_json,
        retry_failed=retry_failed,
        engine=EngineOptions(given.engine),
    )


def report(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="A run's id, the beginning of it, its folder, or `last`; without it, runs are listed.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FOLDER", help="Output folder [default: `report` in the run]."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Write a finished run's report: one HTML file that works from disk, its figures and the records.

    Without a RUN the runs are listed, the newest first.
    """
    if name is None:
        require_lab("lab", "duckdb")
        from firecircle.cli.lab.running import show_runs
        from firecircle.lab.runs.folder import list_runs

        if out is not None:
            raise ConfigError("--out", "no run is named", "name the RUN to report on")
        show_runs(list_runs(), as_json=as_json)
        return 0
    require_lab("lab", "duckdb", "jinja2")
    from firecircle.cli.lab.running import report_on
    from firecircle.lab.runs.folder import find_run

    return report_on(find_run(name), Path(out) if out else None, as_json=as_json)


@with_options(RunOptions)
def study(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="dialogue, rivals, chair, gap, quorum, ablation, guidance, cost, validation, wording or"
            " redteam.",
        ),
    ],
    models: Annotated[
        list[str] | None,
        typer.Option("--models", metavar="A,B", help="Voices of the circle [default: the embedded readers]."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="FILE", help="Labelled prompts; default: the bundled examples.")
    ] = None,
    field: FieldOption = None,
    label_map: LabelMapOption = None,
    system: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The operator's text of prompts that have none: text, or @file."),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Judge so many of them, drawn by the seed.")
    ] = None,
    plan_only: Annotated[
        bool, typer.Option("--plan", help="Print the study's plan, to be changed and run by itself.")
    ] = False,
    *,
    given: RunOptions,
) -> int:
    """Run a ready-made study and report on it; after an interruption the same command goes on.

    \b
    firecircle lab study dialogue
    firecircle lab study dialogue --data prompts.csv --field user=Frage --label-map ja=attack
    """
    require_lab("lab", "duckdb", "jinja2")
    from firecircle.cli.batch.options import field_map_of
    from firecircle.cli.evaluate.inputs import text_of
    from firecircle.cli.output import print_json
    from firecircle.lab.studies import study_plan, study_text

    if data is None and (field or label_map):
        raise ConfigError("--field" if field else "--label-map", "says what a file means", "add --data FILE")
    fields = field_map_of(field or (), label_map or ())
    if data is not None:
        _require_records(data, fields)
    text = study_text(
        name,
        names_in(models or (), "--models"),
        data,
        sample,
        fields=fields,
        system="" if system is None else text_of("--system", system),
    )
    plan = study_plan(text, name)
    if plan_only:
        print_json(plan.model_dump(mode="json")) if given.as_json else print(text, end="")
        return 0
    return _run_plan(plan, text, Path.cwd(), given, validated=name == "validation", reported=True)


def _require_records(data: str, fields: FieldMap) -> None:
    """Complain about a file that cannot be read in the words of the options that would cure it."""
    from firecircle.lab.datasets import BadRows, read_dataset
    from firecircle.lab.datasets.cleaning import Cure
    from firecircle.lab.datasets.reading import BUNDLED

    path = data if data.partition(":")[0] == BUNDLED else Path(data).expanduser()
    try:
        next(read_dataset(path, fields, BadRows(), cure_words=Cure.in_options))
    except ConfigError as wrong:
        raise wrong.renamed("--field" if (wrong.field or "").startswith("FieldMap") else "--data") from None


def _run_plan(
    plan: Plan,
    text: str,
    base: Path,
    given: RunOptions,
    *,
    retry_failed: bool = False,
    validated: bool = False,
    reported: bool = False,
) -> int:
    from firecircle.cli.lab.running import carry_out
    from firecircle.lab.runs.starting import open_run

    engine = EngineOptions(given.engine)
    folder = open_run(plan, text, base, out=Path(given.out) if given.out else None, new=given.new)
    return carry_out(
        folder,
        save=given.save,
        as_json=given.as_json,
        retry_failed=retry_failed,
        validated=validated,
        reported=reported,
        engine=engine,
    )


def votes(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Items and judges: .csv, .jsonl or .parquet.")],
    judges: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="The columns of the judges.")
    ] = None,
    gold: Annotated[str | None, typer.Option(metavar="NAME", help="The column of the labels.")] = None,
    threshold: Annotated[
        float, typer.Option(metavar="F", min=0, max=1, help="Score from which a vote counts as an alarm.")
    ] = 0.5,
    as_json: AsJson = False,
) -> int:
    """Report the effective number of voices, error correlation, best subsets and weights of judges."""
    require_lab("lab votes", "duckdb")
    from firecircle.cli.output import console_on, print_json, print_sections
    from firecircle.lab.votes import read_votes, report_on_votes
    from firecircle.telling.safe_text import printable_line

    table = read_votes(Path(file), judges=names_in(judges or (), "--judges"), gold=gold, threshold=threshold)
    report = report_on_votes(table)
    if as_json:
        print_json(report.model_dump(mode="json"))
        return 0
    voices = [report.independence.sentence(), f"interval {_show(report.independence.effective)}"]
    if report.one_more is not None:
        voices.append(f"one more judge like these adds {report.one_more:.2f}")
    each = [
        f"{printable_line(judge.judge)}: wrong {_show(judge.error_rate)}"
        + ("" if judge.weight is None else f", weight {judge.weight:.2f}")
        for judge in report.each
    ]
    best = [
        f"{len(subset.judges)}: {', '.join(map(printable_line, subset.judges))};"
        f" AUC {_show(subset.held_out_auc)}"
        for subset in report.best
    ]
    phi = report.errors.mean_phi
    print_sections(
        console_on(sys.stdout),
        (
            ("Items", [f"{report.items:,}, {report.labelled:,} labelled"]),
            ("Voices", voices),
            ("Errors", [] if phi is None else [f"mean correlation {phi:.2f}"]),
            ("Agree", [f"Krippendorff's alpha {_show(report.agreement)}"]),
            ("Judges", each),
            ("Best", best),
            ("Sum", [f"AUC equal {_show(report.equal_auc)}, weighted {_show(report.weighted_auc)}"]),
        ),
    )
    return 0


def _show(figure: Estimate) -> str:
    if figure.value is None:
        return f"unknown ({figure.note})"
    interval = (
        "" if figure.low is None or figure.high is None else f" ({figure.low:.2f} to {figure.high:.2f})"
    )
    return f"{figure.value:.2f}{interval}"
