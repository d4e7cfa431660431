"""Whoever runs commands in a stranger's folder gives nothing away: every command, in a namespace with listeners."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.security.cloned_folder import AT_AUTHOR, FILE, KEY

REPOSITORY = Path(__file__).parents[2]
NAMESPACE = ["unshare", "-rn"]


def why_not() -> str | None:
    """What keeps this machine from having a network namespace of its own."""
    if missing := [tool for tool in ("unshare", "ip") if shutil.which(tool) is None]:
        return f"{' and '.join(missing)} missing"
    tried = subprocess.run([*NAMESPACE, "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    return f"no namespace: {tried.stderr.decode().strip()}" if tried.returncode else None


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the listeners heard while every command ran."""
    if reason := why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("cloned")
    paths = os.pathsep.join((str(REPOSITORY / "src"), str(REPOSITORY)))
    done = subprocess.run(
        [*NAMESPACE, sys.executable, "-P", "-m", "tests.security.cloned_folder", str(folder)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told: dict[str, Any] = json.loads((folder / "heard.json").read_text())
    return {**told, "said": done.stderr.partition("TRUSTED")}


def test_every_command_is_tried(heard: dict[str, Any]) -> None:
    assert heard["missing"] == [], "say in COMMANDS or APART how they are tried"
    assert [line for line, status in heard["ended"].items() if not status.isdigit()] == []


def test_the_author_of_the_folder_hears_nothing(heard: dict[str, Any]) -> None:
    assert heard["author"] == []


def test_no_file_of_the_user_s_is_sent_or_written(heard: dict[str, Any]) -> None:
    assert heard["own"], "the user's own provider was asked"
    assert not any(FILE in asked for asked in heard["own"])
    assert not any(KEY in asked.partition("\n\n")[2] for asked in heard["own"])
    assert not {".out.sarif", ".out.xml", ".new.json", ".out.csv"} & {*heard["home"]}


def test_the_traps_are_real(heard: dict[str, Any]) -> None:
    assert any(FILE in asked for asked in heard["after_trust"]), "a trusted file is in force"


def test_addresses_beyond_the_machine_are_named(heard: dict[str, Any]) -> None:
    before, _, after = heard["said"]
    assert "prompts go to" not in before
    assert after.count(f"prompts go to {AT_AUTHOR}/v1\n") == 1
