"""`firecircle batch`: judge many prompts, in one table or, if they are too many for that, part by part."""

from __future__ import annotations

from typing import Annotated

import typer

from firecircle.cli.batch.options import BatchOptions, PartOptions, is_folder
from firecircle.cli.options import AsJson, JudgingOptions, with_options
from firecircle.cli.trouble import require_lab
from firecircle.errors import ConfigError


@with_options(PartOptions)
@with_options(JudgingOptions)
@with_options(BatchOptions)
def batch(
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|DIR|-",
            help="JSONL, CSV, Parquet, text (one prompt per line), a folder of texts, or standard input. With"
            " --out FOLDER several of them, and globs in quotes.",
        ),
    ],
    *,
    many: BatchOptions,
    given: JudgingOptions,
    parts: PartOptions,
    as_json: AsJson = False,
) -> int:
    """Judge many prompts. Exit status 0: nothing fails, 1: an alarm, 2: error, 3: unread, 4: provider out.

    --system, --application and --turns are shared by all that have none of their own. The same command goes
    on after Ctrl-C, a crash or kill -9, and no answer is paid twice.

    With --out FOLDER the built-in readers judge any number of rows on all cores and write a Parquet file a
    part, top.jsonl with the loudest rows, and summary.json and summary.txt with what it comes to; the exit
    status is 0 whatever was found, 2 if a file could not be read to its end, 4 if an escalation stopped.

    \b
    firecircle batch messages.csv --system @system.txt --out results.csv
    firecircle batch prompts.jsonl --models family:anthropic-sonnet,family:openai-gpt --budget-usd 5
    firecircle batch 'crawl/*.parquet' --out screened
    firecircle batch chats.jsonl --out screened --models embedded:rules,embedded:ngrams
    """
    if many.out is not None and is_folder(many.out):
        require_lab("--out FOLDER", "duckdb")
        from firecircle.cli.batch.parts import judge_in_parts

        return judge_in_parts(source, many, given, parts, as_json=as_json)
    parts.require_folder()
    if len(source) > 1:
        raise ConfigError("FILE", "several files go into a folder of parts", "add --out FOLDER, or name one")
    from firecircle.cli.batch.judging import judge_table

    return judge_table(source[0], many, given, as_json=as_json)
