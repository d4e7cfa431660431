"""Read and write in folders that a stranger may have prepared: follow no link, wait on no pipe."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from pathlib import Path


def read_regular(path: str | Path, largest: int) -> bytes:
    """The content of a regular file of at most `largest` bytes; an `OSError` for anything else."""
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if found.st_size > largest:
            raise OSError(errno.EFBIG, f"larger than {largest:,} bytes", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            # Kernel files such as /proc/self/environ have size 0, so nothing of them is read.
            return file.read(found.st_size)
    finally:
        os.close(descriptor)


def stays_in(folder: Path, name: str) -> bool:
    """Whether a path, relative to this folder, is inside it after all links are followed."""
    real = os.path.realpath(folder)
    return "\0" not in name and Path(os.path.realpath(os.path.join(real, name))).is_relative_to(real)


def leads_out(file: str) -> bool:
    """Whether a file is a link out of its folder. System links such as /dev/stdout do not count."""
    folder, name = os.path.split(os.path.abspath(file))
    return (
        os.path.islink(file) and not folder.startswith(("/dev", "/proc")) and not stays_in(Path(folder), name)
    )


def is_draft(name: str) -> bool:
    """Whether a file of this name is left over from an interrupted write."""
    return name.startswith(".") and name.endswith(".part")


def write_whole(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Write a whole file or nothing; a link at the path is replaced, not followed."""
    data = content.encode() if isinstance(content, str) else content
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def sha256_of(path: Path) -> str:
    """The digest of everything in a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
