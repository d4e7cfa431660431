"""`firecircle mcp`: the circle as tools for whoever speaks the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from firecircle.cli.options import StoreOption
from firecircle.errors import ConfigError, install_command


def mcp(
    store: StoreOption = None,
    save: Annotated[
        bool, typer.Option("--save/--no-save", help="Keep what is judged in the store. Default: keep.")
    ] = True,
) -> int:
    """Serve evaluate, batch, circles, the bank and blind spots over standard input and output.

    A client such as an editor or an agent starts this command itself; in a terminal it waits for one until
    Ctrl-C. Who judges follows from the key and from firecircle.toml, as for evaluate.
    """
    try:
        import mcp.server  # noqa: F401 - only whether it is there
    except ModuleNotFoundError as missing:
        raise ConfigError("mcp", f"{missing.name} is not installed", install_command("mcp")) from None
    from firecircle.cli.mcp_server import serve

    serve(store, save=save)
    return 0
