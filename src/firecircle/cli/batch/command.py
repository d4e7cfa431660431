"""What the options of a batch mean: its prompts read, its judges chosen, its files known to be writable."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from firecircle.cli.batch.files import require_known_format
from firecircle.cli.batch.judging import BatchRequest, judge_batch
from firecircle.cli.batch.options import BatchOptions
from firecircle.cli.batch.reading import STANDARD_INPUT, read_batch
from firecircle.cli.columns import field_map_of
from firecircle.cli.evaluate.inputs import Sources, prompt_from
from firecircle.cli.options import require_writable
from firecircle.errors import ConfigError
from firecircle.request import JudgingRequest, configured_by_file, offline_request

if TYPE_CHECKING:
    from firecircle.circle.panel import Guide
    from firecircle.store.opening import Store


def evaluate_batch(
    options: BatchOptions,
    asked: JudgingRequest,
    shared: Sources,
    *,
    offline: bool,
    keeping: Store | None,
    label: str | None,
    bank: Guide | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Judge every prompt of the batch; the exit status."""
    assert options.batch is not None
    layers = {"system": shared.system, "application": shared.application, "turns": shared.turns}
    for name, source in layers.items():
        if source == STANDARD_INPUT == options.batch:
            raise ConfigError(f"--{name}", "standard input is the batch already", "use @file")
    if options.out is not None:
        require_known_format(options.out)
    for option, file in (("--junit", options.junit), ("--sarif", options.sarif)):
        if file is not None:
            require_writable(file, option)
    batch = read_batch(
        options.batch,
        field_map_of(options.field or (), options.label_map or ()),
        options.batch_name,
        prompt_from(replace(shared, user="")),
    )
    records = batch.records
    judges = [configured_by_file(offline_request(asked) if offline else asked)] * len(records)
    if dry_run:
        from firecircle.cli.evaluate.dry_run import estimate_batch

        prompts = [(record.prompt, judging.config) for record, judging in zip(records, judges, strict=True)]
        return estimate_batch(batch.name, prompts, as_json=as_json)
    return judge_batch(
        BatchRequest(
            batch,
            judges,
            store=keeping,
            label=label,
            bank=bank,
            options=options,
            as_json=as_json,
        )
    )
