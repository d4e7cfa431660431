"""`firecircle scan`: a corpus of any size through the embedded circle, resumable by shard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from firecircle.cli.columns import FieldOption, LabelMapOption
from firecircle.cli.engines import Address, Engine
from firecircle.cli.options import AsJson, Threshold, with_options
from firecircle.errors import ConfigError

SHARD_ROWS = 2000
TOP = 100
UNSURE = (0.3, 0.7)
"""The band of an escalation that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions:
    """What is screened, how, and where it goes."""

    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="DIR", show_default=False, help="The scan's folder; the same one goes on."
        ),
    ]
    field: FieldOption = None
    label_map: LabelMapOption = None
    system: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The operator's text of rows without one: text or @file."),
    ] = None
    application: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The application's text of rows without one.")
    ] = None
    turn: Annotated[
        int | None, typer.Option(metavar="1", min=1, max=1, help="1 says that nothing came before any row.")
    ] = None
    neural: Annotated[
        bool,
        typer.Option(
            "--neural", help="Seat the neural voice, too: finds more, and takes about five times as long."
        ),
    ] = False
    threshold: Threshold = None
    top: Annotated[
        int, typer.Option(metavar="K", min=0, max=1_000_000, help="How many of the loudest rows to list.")
    ] = TOP
    shard_rows: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=10_000_000, help="Rows in a shard, which is done whole or again."
        ),
    ] = SHARD_ROWS
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=4096, help="Processes. Default: one a core.")
    ] = None
    escalate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,C", help="Have a circle of these voices judge the uncertain band, within a budget."
        ),
    ] = None
    band: Annotated[
        tuple[float, float], typer.Option(metavar="LOW HIGH", help="Which F is uncertain: from, and below.")
    ] = UNSURE
    budget: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="What the escalation may cost at most.")
    ] = None
    budget_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The tokens it may take at most.")
    ] = None
    engine: Engine = "local"
    address: Address = None
    anew: Annotated[bool, typer.Option("--anew", help="Judge everything again, whatever DIR holds.")] = False
    as_json: AsJson = False


@with_options(ScanOptions)
def scan(
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS...", help="Parquet, JSONL, CSV, text, a folder of them, or a glob in quotes."
        ),
    ],
    *,
    given: ScanOptions,
) -> int:
    """Screen a large corpus with the embedded circle on all cores: F, patterns and quotes of every row.

    The same command goes on after Ctrl-C, a crash or kill -9. DIR/shards holds a Parquet file a shard,
    DIR/top.jsonl the loudest rows, DIR/summary.json and DIR/summary.txt what it comes to. Exit status 0: all
    was screened, whatever was found; 2: a file could not be read to its end; 4: the escalation stopped before
    its end, at its budget or at a provider that is out.

    \b
    firecircle scan 'crawl/*.parquet' --out screened
    firecircle scan chats.jsonl --out screened --field user=body --top 500
    firecircle scan chats.jsonl --out screened --escalate family:anthropic-sonnet,family:openai-gpt --budget 5
    """
    from firecircle.cli.scan.scanning import scan_corpus

    if not given.out.strip():
        raise ConfigError("--out", "has no name", "name a folder")
    return scan_corpus(corpus, given)
