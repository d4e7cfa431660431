"""A package index in a folder, with a tiny model in three pieces."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

import pytest

from firecircle.voices.local.weights import InParts

PIECES = (b"GGUF" + bytes(range(60)) * 16, b"the second piece" * 60 + b"....", b"the rest")
PART_SIZE = len(PIECES[0])
WHOLE = b"".join(PIECES)
PACKAGE = "firecircle-test-part{number}"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


MODEL = InParts(
    name="tiny",
    file_name="tiny.gguf",
    size=len(WHOLE),
    sha256=digest(WHOLE),
    package=PACKAGE,
    version="0.2.0",
    part_size=PART_SIZE,
    parts=tuple(digest(piece) for piece in PIECES),
)


class Index:
    """A folder of wheels that stands for the package registry."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.trace = folder.with_name("the-package-was-run")
        folder.mkdir()
        for number, piece in enumerate(PIECES, 1):
            self.put(number, piece)
        for tool in ("PIP", "UV"):
            monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
            monkeypatch.setenv(f"{tool}_FIND_LINKS", str(folder))

    def put(self, number: int, piece: bytes) -> None:
        """A wheel with one piece, whose module leaves a trace if anybody runs it."""
        name = f"firecircle_test_part{number}"
        about = f"{name}-0.2.0.dist-info"
        files = {
            f"{name}/__init__.py": f"open({str(self.trace)!r}, 'w').close()\n".encode(),
            f"{name}/data/part{number:02}.bin": piece,
            f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE.format(number=number)}\n"
            f"Version: 0.2.0\nRequires-Dist: firecircle-no-such-package\n".encode(),
            f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
            b"Tag: py3-none-any\n",
        }
        record = [f"{path},{_recorded(content)},{len(content)}" for path, content in files.items()]
        files[f"{about}/RECORD"] = "\n".join([*record, f"{about}/RECORD,,", ""]).encode()
        with zipfile.ZipFile(self.folder / f"{name}-0.2.0-py3-none-any.whl", "w") as wheel:
            for path, content in files.items():
                wheel.writestr(path, content)

    def remove(self, number: int) -> None:
        (self.folder / f"firecircle_test_part{number}-0.2.0-py3-none-any.whl").unlink()


def _recorded(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
