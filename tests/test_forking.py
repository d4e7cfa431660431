"""Processes of a parallel run are copies of one that has loaded everything, and tell what others would tell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")

REPOSITORY = Path(__file__).parents[1]
SUITE = {
    "pytest.ini": "[pytest]\naddopts = -ra --import-mode=importlib --disable-plugin-autoload -p xdist\npythonpath = .\n",
    "conftest.py": "from tests.forking import fork_from_one as pytest_xdist_setupnodes\n",
    "slow_to_load.py": "import os\nwith open('loaded', 'a') as log: log.write(f'{os.getpid()}\\n')\n",
    "test_a.py": "import os, slow_to_load\n"
    "def test_who():\n    with open('who', 'a') as log: log.write(f'{os.getpid()}\\n')\n"
    "def test_that_fails():\n    assert 1 == 2\n",
    "test_b.py": "import pytest\npytest.skip('not here', allow_module_level=True)\n",
    "test_c.py": "import os\ndef test_that_ends_its_process():\n    os._exit(3)\n",
    "test_d.py": "import os, sys, slow_to_load\ndef test_the_streams():\n    assert os.read(0, 1) == b''\n    assert sys.argv == ['-c']\n",
}


def ran(folder: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--numprocesses=2", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_what_all_of_them_need_is_loaded_once_and_each_outcome_is_told(tmp_path: Path) -> None:
    run = ran(tmp_path, SUITE)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "2 failed, 2 passed, 1 skipped" in run.stdout
    assert "test_b.py:2: not here" in run.stdout
    assert "crashed while running 'test_c.py::test_that_ends_its_process'" in run.stdout
    (loader,) = (tmp_path / "loaded").read_text().split()
    assert (tmp_path / "who").read_text().split() != [loader]
    with pytest.raises(ProcessLookupError):
        os.kill(int(loader), 0)


def test_a_file_that_cannot_be_loaded_is_told_as_ever(tmp_path: Path) -> None:
    run = ran(tmp_path, {**SUITE, "test_e.py": "import slow_to_load\nraise RuntimeError('no')\n"})
    assert run.returncode != 0
    assert "ERROR test_e.py - RuntimeError: no" in run.stdout
