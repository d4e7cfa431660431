"""Where nothing can be written, a command says so in one line and with its status."""

from __future__ import annotations

import json
import os
import re
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


def with_little_room(folder: Path, room: int, *command: str, **variables: str) -> tuple[int, str]:
    """A command whose files may have so many bytes: one write is cut short, and the next one fails."""
    resource = pytest.importorskip("resource")
    known = {name: value for name, value in os.environ.items() if name != "OPENROUTER_API_KEY"}
    with (folder / "out").open("w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "firecircle", *command],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            env={**known, "HOME": str(folder), **variables},
            cwd=folder,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["--json", "--json=full"])
def test_an_output_that_fits_in_part_is_told_too(tmp_path: Path, command: str, unbuffered: str) -> None:
    status, error = with_little_room(
        tmp_path, 600, "evaluate", "hello", "--no-save", command, PYTHONUNBUFFERED=unbuffered
    )
    assert (status, error) == (2, "error: the output: cannot be written: File too large\n")
    assert (tmp_path / "out").stat().st_size == 600


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_fits_is_whole(tmp_path: Path, unbuffered: str) -> None:
    status, error = with_little_room(
        tmp_path, 10_000_000, "evaluate", "hello", "--no-save", "--json=full", PYTHONUNBUFFERED=unbuffered
    )
    assert (status, error) == (0, "")
    assert json.loads((tmp_path / "out").read_text())


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_batch_that_cannot_be_written_is_told_in_one_line(tmp_path: Path, ending: str) -> None:
    (tmp_path / "data.jsonl").write_text('{"user": "hello"}\n' * 40)
    batch = ("--batch", "data.jsonl", "--quiet", "--no-save", "--out", f"rows.{ending}")
    status, error = with_little_room(tmp_path, 200, "evaluate", *batch)
    assert status == 2
    assert re.fullmatch(
        rf"error: FILE: cannot write rows\.{ending}: .*File too large.*; name another file\n", error
    ), error
    assert not (tmp_path / f"rows.{ending}").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".firecircle-")]
