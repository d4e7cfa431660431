"""Files of JSON lines as a command line names them: a path, or - for standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from firecircle.errors import ConfigError


def write_lines(lines: Iterable[str], file: str) -> int:
    """Write the lines: how many they were. A file is whole or, when something goes wrong, as it was."""
    if file == "-":
        return sum(1 for line in lines if sys.stdout.write(f"{line}\n"))
    path = Path(file)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    count = 0
    try:
        try:
            with os.fdopen(os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as out:
                for line in lines:
                    out.write(f"{line}\n")
                    count += 1
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as refused:
        raise ConfigError(
            f"FILE: cannot write {file}: {refused.strerror or refused}; name another file"
        ) from None
    return count


@contextmanager
def read_lines(file: str) -> Iterator[Iterable[str]]:
    """The lines of a file."""
    if file == "-":
        yield _readable(sys.stdin, "standard input")
        return
    try:
        with open(file, encoding="utf-8") as opened:
            yield _readable(opened, file)
    except OSError as refused:
        raise ConfigError(
            f"FILE: cannot read {file}: {refused.strerror or refused}; name another file"
        ) from None


def _readable(lines: Iterable[str], name: str) -> Iterator[str]:
    try:
        yield from lines
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"FILE: {name} is not UTF-8 text; give a file that `bank export` wrote") from None
