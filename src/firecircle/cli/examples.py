"""`firecircle examples`: the bundled prompts to try the circle on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import PatternType
from firecircle.errors import ConfigError
from firecircle.names import Label

if TYPE_CHECKING:
    from rich.console import Console

    from firecircle.examples import Example


def examples(
    pattern_type: PatternType = None,
    label: Annotated[Label | None, typer.Option(help="Only attacks, or only their benign twins.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, prompts included.")] = False,
) -> int:
    """List the bundled examples: id, pattern type, label and why. Try one with `evaluate --example ID`."""
    import sys

    from firecircle.cli.output import console_on, print_json
    from firecircle.examples import load_examples

    types = tuple(dict.fromkeys(example.pattern_type for example in load_examples()))
    if pattern_type is not None and pattern_type not in types:
        raise ConfigError("--type", f"no examples of {pattern_type!r}", f"the types are {', '.join(types)}")
    chosen = [
        example
        for example in load_examples()
        if pattern_type in (None, example.pattern_type) and label in (None, example.label)
    ]
    if as_json:
        print_json([example.model_dump(mode="json") for example in chosen])
    else:
        _print(console_on(sys.stdout), chosen)
    return 0


def _print(console: Console, chosen: list[Example]) -> None:
    """A line each for a pipe; on a terminal grouped by type, the notes under the ids."""
    from rich.padding import Padding
    from rich.text import Text

    from firecircle.cli.output import print_line
    from firecircle.telling.safe_text import printable_line

    group = ""
    for example in chosen:
        note = printable_line(example.note)
        if not console.is_terminal:
            print_line(console, f"{example.id}\t{example.pattern_type}\t{example.label}\t{note}")
            continue
        if example.pattern_type != group:
            group = example.pattern_type
            console.print(Text(f"\n{group.replace('_', ' ')}", style="bold cyan"))
        line = Text(f"{example.id}  ")
        line.append(example.label, style="red" if example.label == "attack" else "green")
        console.print(line)
        console.print(Padding(Text(note, style="dim"), (0, 0, 0, 4)))
