"""Where nothing can be written, a command says so in one line and with its status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "hello"),
        ("evaluate", "hello", "--json"),
        ("examples",),
        ("voices",),
        ("circles", "export"),
        ("--help",),
        ("--version",),
    ],
    ids=" ".join,
)
def test_a_full_output_is_told_in_one_line_and_by_the_status(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    home = {"HOME": str(tmp_path), "FIRECIRCLE_STORE": str(tmp_path / "c.sqlite")}
    known = {name: value for name, value in os.environ.items() if name != "OPENROUTER_API_KEY"}
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "firecircle", *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**known, **home},
            cwd=tmp_path,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        2,
        "error: the output: cannot be written: No space left on device\n",
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_error_stream_still_leaves_with_trouble(tmp_path: Path, unbuffered: str) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "firecircle", "nonsense"],
            stderr=full,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            cwd=tmp_path,
            check=False,
        )
    assert done.returncode == 2
