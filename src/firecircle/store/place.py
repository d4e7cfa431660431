"""Where the store is: the path of a SQLite file or the URL of a PostgreSQL database."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from firecircle.errors import ConfigError
from firecircle.settings import Settings, current_settings, user_folder

STORE_VARIABLE = "FIRECIRCLE_STORE"
"""The environment variable with the path of a SQLite file or the URL of a PostgreSQL database."""
FILE_NAME = "circles.sqlite"
Where = str | os.PathLike[str]
Place = Path | str
"""The absolute path of a SQLite file, or a PostgreSQL URL."""
_PASSWORD = re.compile(r"://[^/?#@]*:[^/?#@]+@|[?&](?:ssl)?password=", re.IGNORECASE)


def place_of(where: Where | None = None) -> Place:
    """The named place, by default that of the environment, the settings or the user's folder."""
    if where is not None:
        name = os.fspath(where)
        if not name.strip():
            raise ConfigError("store", "an empty name", "give a file's path or a postgresql:// URL")
        return _place(name)
    if name := os.environ.get(STORE_VARIABLE, ""):
        return _place(name)
    return _place_in_settings(current_settings()) or user_folder("data") / FILE_NAME


def _place(name: str, folder: Path | None = None) -> Place:
    scheme, separator, rest = name.partition("://")
    if not separator:
        path = Path(name).expanduser()
        return (folder / path if folder else path).absolute()
    backend = scheme.lower().partition("+")[0]
    if backend in ("postgresql", "postgres"):
        return f"postgresql+psycopg://{rest}"
    if backend == "sqlite":
        file = unquote(rest.partition("?")[0]).removeprefix("/")
        if file:
            return Path(file).absolute()
    raise ConfigError("store", "no such kind of database", "use a file's path or a postgresql:// URL")


def _place_in_settings(settings: Settings) -> Place | None:
    name = settings.store.path
    if name is None:
        return None
    if _PASSWORD.search(name):
        raise settings.mistake(
            "store",
            ConfigError(
                "path", "a password does not belong into a file", f"put the URL into {STORE_VARIABLE}"
            ),
        )
    folder = settings.source.parent if settings.source else Path()
    try:
        return _place(name, folder)
    except ConfigError as wrong:
        raise settings.mistake("store", wrong.renamed("path")) from None
