"""Patterns for paths as `.gitignore` writes them, for what is ignored and for what a file is alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple


class _Glob(NamedTuple):
    expression: re.Pattern[str]
    only_folders: bool
    takes_back: bool


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
            self._fits_itself("/".join(parts[:depth]), is_folder=is_folder or depth < len(parts))
            for depth in range(1, len(parts) + 1)
        )

    def _fits_itself(self, path: str, *, is_folder: bool) -> bool:
        fits = False
        for glob in self._globs:
            if (is_folder or not glob.only_folders) and glob.expression.fullmatch(path):
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
    pattern = pattern.lstrip("/")
    expression = "" if anchored else "(?:.*/)?"
    at = 0
    while at < len(pattern):
        rest = pattern[at:]
        if rest.startswith("**/"):
            expression, at = expression + "(?:.*/)?", at + 3
        elif rest.startswith("**"):
            expression, at = expression + ".*", at + 2
        elif rest[0] == "*":
            expression, at = expression + "[^/]*", at + 1
        elif rest[0] == "?":
            expression, at = expression + "[^/]", at + 1
        elif listed := re.match(r"\[(!?)([^\]/]+)\]", rest):
            signs = re.sub(r"([\\\[\]^&~|])", r"\\\1", listed[2])
            expression, at = f"{expression}[{'^' if listed[1] else ''}{signs}]", at + listed.end()
        else:
            expression, at = expression + re.escape(rest[0]), at + 1
    try:
        return _Glob(re.compile(expression, re.DOTALL), only_folders, takes_back)
    except re.error:  # such as [z-a]: fits nothing, as with git
        return None
