"""The option by which a command is told where the store is."""

from __future__ import annotations

from typing import Annotated

import typer

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PATH|URL",
        help="The store: a SQLite file or postgresql:// URL. Default: FIRECIRCLE_STORE, else your own file.",
    ),
]
