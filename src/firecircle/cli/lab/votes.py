"""`firecircle lab votes`: how many independent voices a table of judges amounts to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import AsJson, names_in
from firecircle.cli.trouble import require_lab

if TYPE_CHECKING:
    from firecircle.lab.statistics import Estimate


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
    from firecircle.cli.printable import printable_line
    from firecircle.lab.votes import read_votes, report_on_votes

    table = read_votes(Path(file), judges=names_in(judges or (), "--judges"), gold=gold, threshold=threshold)
    report = report_on_votes(table)
    if as_json:
        print_json(report.model_dump(mode="json"))
        return 0
    voices = [report.independence.sentence(), f"interval {_shown(report.independence.effective)}"]
    if report.one_more is not None:
        voices.append(f"one more judge like these adds {report.one_more:.2f}")
    each = [
        f"{printable_line(judge.judge)}: wrong {_shown(judge.error_rate)}"
        + ("" if judge.weight is None else f", weight {judge.weight:.2f}")
        for judge in report.each
    ]
    best = [
        f"{len(subset.judges)}: {', '.join(map(printable_line, subset.judges))};"
        f" AUC {_shown(subset.held_out_auc)}"
        for subset in report.best
    ]
    phi = report.errors.mean_phi
    print_sections(
        console_on(sys.stdout),
        (
            ("Items", [f"{report.items:,}, {report.labelled:,} labelled"]),
            ("Voices", voices),
            ("Errors", [] if phi is None else [f"mean correlation {phi:.2f}"]),
            ("Agree", [f"Krippendorff's alpha {_shown(report.agreement)}"]),
            ("Judges", each),
            ("Best", best),
            ("Sum", [f"AUC equal {_shown(report.equal_auc)}, weighted {_shown(report.weighted_auc)}"]),
        ),
    )
    return 0


def _shown(figure: Estimate) -> str:
    if figure.value is None:
        return f"unknown ({figure.note})"
    interval = (
        "" if figure.low is None or figure.high is None else f" ({figure.low:.2f} to {figure.high:.2f})"
    )
    return f"{figure.value:.2f}{interval}"
