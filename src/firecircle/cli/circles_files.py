"""Files as a command line names them: a path, or - for standard input and output."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO

from firecircle.errors import ConfigError


@contextmanager
def written_whole(file: str) -> Iterator[IO[str]]:
    """Where an export goes; a file appears, for its owner alone, when it is whole."""
    if file == "-":
        yield sys.stdout
        sys.stdout.flush()  # a reader who has left is noticed here, not when the interpreter ends
        return
    target = os.path.realpath(file)
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            # A device or a pipe is written to; replacing it would take it away from everybody.
            with open(target, "w", encoding="utf-8") as special:
                yield special
            return
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=os.path.dirname(target), prefix=".firecircle-", delete=False
        ) as half:
            try:
                yield half.file
                half.flush()
                os.fsync(half.fileno())
                os.replace(half.name, target)
            except BaseException:
                os.unlink(half.name)
                raise
    except BrokenPipeError:
        raise
    except OSError as unwritable:
        raise ConfigError(
            f"FILE: cannot write {file}: {unwritable.strerror or unwritable}; name another file"
        ) from None


@contextmanager
def readable(file: str) -> Iterator[BinaryIO]:
    """Where an import comes from."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with open(file, "rb") as source:
            source.peek(1)  # a folder opens, but cannot be read
            yield source
    except OSError as unreadable:
        raise ConfigError(
            f"FILE: cannot read {file}: {unreadable.strerror or unreadable}; name another file"
        ) from None
