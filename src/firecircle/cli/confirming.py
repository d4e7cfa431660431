"""Asking whether something is meant before it is done for good."""

from __future__ import annotations

import sys

from firecircle.cli.printable import printable_line
from firecircle.errors import ConfigError


def is_meant(question: str, *, yes: bool, otherwise: str) -> bool:
    """Whether the user says so: beforehand with --yes, or now at the terminal.

    Where nobody can be asked it is an error that says `otherwise`, such as "nothing was deleted".
    """
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(f"--yes: needed where nobody can be asked; {otherwise}")
    print(f"{printable_line(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
