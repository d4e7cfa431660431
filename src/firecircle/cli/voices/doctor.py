"""`firecircle doctor`: make one real, tiny call to each voice and say what came of it."""

from __future__ import annotations

from typing import Annotated

import typer


def doctor(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="The voices to test; without any, those who judge by default."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long a voice may take.")
    ] = 20.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Test voices with a real call each. Exit status 0: all can speak, 1: some cannot, 2: error."""
    import asyncio
    import sys

    from firecircle.catalog import require_distinct
    from firecircle.cli.evaluate.plan import Wishes, names_in, plan_from
    from firecircle.cli.output import console_on, heard_from_all, print_json, print_line
    from firecircle.cli.voices.checkup import as_document, as_line, check

    names = names_in(models or (), "MODEL") or plan_from(Wishes()).config.models
    require_distinct(names, "MODEL")
    console = console_on(sys.stdout)
    checkups = asyncio.run(
        heard_from_all(
            {name: check(name, timeout) for name in names},
            lambda _, found: None if as_json else print_line(console, as_line(found)),
        )
    )
    if as_json:
        print_json([as_document(found) for found in checkups.values()])
    return 0 if all(found.well for found in checkups.values()) else 1
