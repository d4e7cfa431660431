"""Patterns for paths as `.gitignore` writes them, for what is ignored and for what a file is alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple


class _Glob(NamedTuple):
    names: tuple[re.Pattern[str] | None, ...]
    """What each name on the way must look like; None is `**`, any number of folders."""
    only_folders: bool
    takes_back: bool

    def fits(self, parts: Sequence[str]) -> bool:
        """Whether these names, one below the other, are meant.

        Name by name, and not by one expression for the whole path: that of a stranger could take for ever.
        """
        reached = {0}
        for name in self.names:
            if name is None:
                reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
            else:
                reached = {at + 1 for at in reached if at < len(parts) and name.match(parts[at])}
        return len(parts) in reached


class Globs:
    """Which paths a list of patterns means; the last pattern that fits decides, `!` takes back.

    A pattern without a slash fits a name at any depth; `**` fits any number of folders; one that fits a
    folder fits everything in it. Paths are written with `/`, from the folder on that the list stands in.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._globs = [glob for pattern in patterns if (glob := _compiled(pattern)) is not None]

    def fit(self, path: str, *, is_folder: bool = False) -> bool:
        """Whether the path, or a folder it stands in, is meant."""
        parts = path.split("/")
        return any(
            self._fits_itself(parts[:depth], is_folder=is_folder or depth < len(parts))
            for depth in range(1, len(parts) + 1)
        )

    def _fits_itself(self, parts: Sequence[str], *, is_folder: bool) -> bool:
        fits = False
        for glob in self._globs:
            if (is_folder or not glob.only_folders) and glob.fits(parts):
                fits = not glob.takes_back
        return fits


@lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> _Glob | None:
    pattern = pattern.strip()
    if not pattern or pattern.startswith("#"):
        return None
    takes_back = pattern.startswith("!")
    pattern = pattern.removeprefix("!").removeprefix("./")
    only_folders = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    anchored = "/" in pattern
    names = pattern.lstrip("/").split("/")
    if names[-1] == "**":
        names.append("*")  # what is inside, not the folder itself
    if not anchored:
        names.insert(0, "**")
    names = [name for name, before in zip(names, ("", *names), strict=False) if {name, before} != {"**"}]
    return _Glob(
        tuple(None if name == "**" else re.compile(translate(name)) for name in names),
        only_folders,
        takes_back,
    )
