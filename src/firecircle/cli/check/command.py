"""`firecircle check`: judge the prompt files of a repository; 0: nothing new, 1: findings, 2: trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from firecircle.cli.options import AsJson, StoreOption, Threshold, names_in

if TYPE_CHECKING:
    from firecircle.cli.batch.options import FailOn


def check(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH", help="Files and folders. Default: this folder.")
    ] = None,
    as_kind: Annotated[
        Literal["system", "skill", "document", "user"] | None,
        typer.Option("--as", help="What all these files are, whatever the settings say."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Findings that were accepted; only others count."),
    ] = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Accept what is found now, and forget what is gone.")
    ] = False,
    contradictions: Annotated[
        bool,
        typer.Option(
            "--contradictions", help="Look for passages that cannot both be followed, and for nothing else."
        ),
    ] = False,
    diff: Annotated[
        str | None,
        typer.Option(metavar="BASE", help="Report only lines that changed since this commit of git."),
    ] = None,
    fail_on: Annotated[
        Literal["alarm", "unsure", "never"], typer.Option("--fail-on", help="What makes the exit status 1.")
    ] = "alarm",
    sarif: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the findings as SARIF, for code scanning.")
    ] = None,
    junit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write one test case per prompt as JUnit XML.")
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,C",
            help="Voices that judge; repeat or separate by commas. Default: the embedded readers, even with a"
            " key.",
        ),
    ] = None,
    threshold: Threshold = None,
    budget_usd: Annotated[
        float | None, typer.Option(metavar="USD", help="Stop before more than this is spent on all files.")
    ] = None,
    at_once: Annotated[
        int | None, typer.Option("--at-once", metavar="N", min=1, max=500, help="Prompts under way at once.")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Keep every judgement in the store, as batch `check`.")
    ] = False,
    store: StoreOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only what was found and went wrong.")] = False,
    as_json: AsJson = False,
) -> int:
    """Judge the prompt files of a repository. Exit status 0: nothing new found, 1: findings, 2: error.

    System prompts and documents are judged for orders against users and for hidden orders, instructions for
    agents and descriptions of tools also against their purpose, fixtures as messages of users, lists of
    messages in YAML and JSON as conversations. The table [check] of firecircle.toml says which file is what.

    \b
    firecircle check
    firecircle check prompts/ --baseline .firecircle-baseline.json --sarif firecircle.sarif
    firecircle check --contradictions AGENTS.md
    firecircle check --diff main
    """
    from firecircle.cli.check.checking import CheckRequest, check_files

    chosen: FailOn = fail_on
    return check_files(
        CheckRequest(
            paths=tuple(paths or ["."]),
            as_kind=as_kind,
            baseline=baseline,
            update_baseline=update_baseline,
            contradictions=contradictions,
            diff=diff,
            fail_on=chosen,
            sarif=sarif,
            junit=junit,
            models=names_in(models or (), "--models"),
            threshold=threshold,
            budget_usd=budget_usd,
            at_once=at_once,
            save=save,
            store=store,
            quiet=quiet,
            as_json=as_json,
        )
    )
