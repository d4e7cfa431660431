"""`firecircle replay`: hold a recorded circle again without asking anybody, under other settings too."""

from __future__ import annotations

from typing import Annotated

import typer

from firecircle.cli.options import AlarmRuleOption, ResultAsJson, Threshold, Verbose


def replay(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `evaluate --json=full` printed; - for standard input.")
    ],
    threshold: Threshold = None,
    alarm_rule: AlarmRuleOption = None,
    pattern_threshold: Annotated[
        float | None,
        typer.Option(metavar="SHARE", min=0, max=1, help="Which share of the voices makes a pattern."),
    ] = None,
    quorum: Annotated[
        bool | None,
        typer.Option("--quorum/--no-quorum", help="Whether the verdict asks for a quorum."),
    ] = None,
    min_coverage: Annotated[
        float | None, typer.Option(metavar="N", min=0, help="The coverage of roles a quorum needs.")
    ] = None,
    min_groups: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The number of lineages a quorum needs.")
    ] = None,
    as_json: ResultAsJson = None,
    verbose: Verbose = False,
) -> int:
    """Conclude a recorded circle again; no voice is asked. Exit status 0: no alarm, 1: alarm, 2: error.

    \b
    firecircle evaluate --example false_authority-03-attack --json=full > circle.json
    firecircle replay circle.json --verbose
    firecircle replay circle.json --threshold 0.5 --pattern-threshold 0.3
    """
    from firecircle.cli.replay.replaying import (
        Replay,
        Settings,
        read_recording,
        replay_and_report,
        with_settings,
    )

    record = read_recording(file)
    settings: Settings = {
        "alarm_threshold": threshold,
        "alarm_rule": alarm_rule,
        "pattern_threshold": pattern_threshold,
        "enforce_quorum": quorum,
        "min_cognitive_coverage": min_coverage,
        "min_provider_groups": min_groups,
    }
    config = with_settings(record.config, settings)
    return replay_and_report(Replay(record, config, file, as_json=as_json, verbose=verbose))
