"""The circles of a red-team run on disk, each as soon as it is held: a file as `circles export` writes it.

What is held already is not held again. What shapes the answers has a digest, which stands in every line.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from importlib.metadata import version
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from firecircle.catalog import original_of
from firecircle.circle.result import FireCircleResult
from firecircle.convene import SeatedCircle
from firecircle.errors import PASSING_KINDS, ConfigError, StoreError
from firecircle.examples import Example
from firecircle.lab.locks import held_alone
from firecircle.names import LOCAL, is_local
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.settings import user_folder
from firecircle.store.transfer import HEADER, BadLine, ImportedCircle, circles_below_header, line_of

SHAPING = (
    "circle",
    "voices",
    "languages",
    "catalog.toml",
    "lab/redteam/members.py",
    "lab/redteam/attacks.toml",
)
"""The parts of this package that shape what voices are asked and what they say."""


class CircleKey(NamedTuple):
    """Which circle of a run it is: what was tried, and the prompt as it was judged."""

    arm: str
    prompt: MultiNeutrosophicPrompt


def circles_folder() -> Path:
    """Where the command keeps its circles. It need not exist."""
    return user_folder("data") / "redteam" / "circles"


class KeptCircles:
    """The circles in one file that fit a circle's digest."""

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self.circles: dict[CircleKey, FireCircleResult] = {}
        """Those that were held to an end that counts."""
        self.damaged: list[BadLine] = []
        self._digest = digest

    @classmethod
    @contextmanager
    def opened(cls, path: Path, circle: SeatedCircle, *, anew: bool = False) -> Iterator[KeptCircles]:
        """The circles in this file, or none if it shall begin anew; no other process holds any meanwhile."""
        kept = cls(path, digest_of(circle))
        busy = ConfigError("redteam", f"another process is adding to {path}", "wait for it")
        with kept._writing():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with held_alone(path.with_name(f".{path.name}.lock"), busy):
            with kept._writing():
                if anew:
                    path.unlink(missing_ok=True)
                if path.is_file():
                    kept._read()
            yield kept

    def _read(self) -> None:
        with self.path.open("rb") as file:
            for line in circles_below_header(file):
                match line:
                    case BadLine():
                        self.damaged.append(line)
                    case ImportedCircle(FireCircleResult() as held, arm=str(arm)):
                        if line.run_id == self._digest and not is_hurt(held):
                            self.circles[CircleKey(arm, held.prompt)] = held

    def add(self, result: FireCircleResult, arm: str, example: Example) -> None:
        """Keep a circle; back when it is on disk."""
        line = line_of(result, run_id=self._digest, arm=arm, record_id=example.id, label=example.label)
        with self._writing(), self.path.open("ab") as file:
            file.write(self._before_line() + line.encode("ascii") + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _before_line(self) -> bytes:
        """The header of a new file, or the end of a line that a killed process left."""
        with self.path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return HEADER.encode("ascii") + b"\n"
            file.seek(-1, os.SEEK_END)
            return b"" if file.read(1) == b"\n" else b"\n"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as trouble:
            raise StoreError(
                f"{self.path}: cannot be used: {trouble.strerror}; mend that and run the same command again:"
                " circles that are kept are not held again"
            ) from None


def is_hurt(result: FireCircleResult) -> bool:
    """Whether a voice was lost to a trouble that passes; then the same command holds the circle again."""
    return any(failure.kind in PASSING_KINDS for failure in result.failures)


def digest_of(circle: SeatedCircle) -> str:
    """Of the voices, the settings, and the version of whatever shapes their answers.

    A function of the caller's own that answers for the voices has no digest.
    """
    addresses = {
        model: str(provider.base_url)
        for model, voice in circle.voices.items()
        if (provider := getattr(voice, "provider", None)) is not None
    }
    shaping: Mapping[str, object] = {
        "config": circle.config.model_dump(mode="json", exclude={"api_key"}),
        "addresses": addresses,
        "files": [_stamp_of(model) for model in circle.config.named_models if is_local(model)],
        "chair": [circle.chair_template, dict(circle.chair_roles)],
        "version": [version("firecircle"), _package_digest()],
    }
    return hashlib.sha256(json.dumps(shaping, sort_keys=True).encode()).hexdigest()[:16]


def _stamp_of(model: str) -> list[object]:
    """When the user's own model file was written, and how large it is; those that we fetch never change."""
    file = Path(original_of(model).removeprefix(LOCAL)).expanduser()
    try:
        about = file.stat()
    except OSError:
        return [model]
    return [model, about.st_size, about.st_mtime_ns]


@cache
def _package_digest() -> str:
    digest = hashlib.sha256()
    package = resources.files("firecircle")
    for part in SHAPING:
        _add(digest, package.joinpath(part), part)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, part: Traversable, name: str) -> None:
    if part.is_dir():
        for inner in sorted(part.iterdir(), key=lambda inner: inner.name):
            if inner.name != "__pycache__":
                _add(digest, inner, f"{name}/{inner.name}")
    else:
        digest.update(f"{name}\0".encode() + part.read_bytes())
