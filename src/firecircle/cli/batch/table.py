"""What the options of a batch mean: its prompts read, its judges chosen, its files known to be writable."""

from __future__ import annotations

from firecircle.cli.batch.files import require_known_format
from firecircle.cli.batch.judging import BatchRequest, judge_batch
from firecircle.cli.batch.options import BatchOptions
from firecircle.cli.batch.reading import STANDARD_INPUT, read_batch
from firecircle.cli.columns import field_map_of
from firecircle.cli.evaluate.inputs import Sources, prompt_from
from firecircle.cli.evaluate.storage import guide_for, store_for
from firecircle.cli.options import JudgingOptions, require_writable
from firecircle.errors import ConfigError
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.request import configured_by_file, offline_request


def shared_layers(given: JudgingOptions) -> MultiNeutrosophicPrompt:
    """The layers of prompts that have none of their own."""
    if given.turn not in (None, 1):
        raise ConfigError(
            "--turn", "of a whole batch only 1 can be said", "give earlier turns in a column or with --turns"
        )
    turns = "[]" if given.turn == 1 else given.turns
    return prompt_from(Sources(given.system, given.application, "", turns))


def judge_table(source: str, options: BatchOptions, given: JudgingOptions, *, as_json: bool) -> int:
    """Judge every prompt of the batch; the exit status."""
    layers = {"system": given.system, "application": given.application, "turns": given.turns}
    for name, text in layers.items():
        if text == STANDARD_INPUT == source:
            raise ConfigError(f"--{name}", "standard input is the batch already", "use @file")
    if options.out is not None:
        require_known_format(options.out)
    for option, file in (("--junit", options.junit), ("--sarif", options.sarif)):
        if file is not None:
            require_writable(file, option)
    batch = read_batch(
        source,
        field_map_of(options.field or (), options.label_map or ()),
        options.name,
        shared_layers(given),
    )
    judges = configured_by_file(offline_request(given.asked) if given.offline else given.asked)
    if given.dry_run:
        from firecircle.cli.evaluate.dry_run import estimate_batch

        prompts = [(record.prompt, judges.config) for record in batch.records]
        return estimate_batch(batch.name, prompts, as_json=as_json)
    return judge_batch(
        BatchRequest(
            batch,
            [judges] * len(batch.records),
            store=store_for(given.save, given.store, given.label, is_read=given.bank is not None),
            label=given.label,
            bank=guide_for(given.bank, given.mode, given.store),
            options=options,
            as_json=as_json,
        )
    )
