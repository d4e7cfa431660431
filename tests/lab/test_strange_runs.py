"""Run folders that a stranger prepared: a pipe or an endless device in place of a file is refused at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.running import ran_apart

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")


@pytest.mark.parametrize("name", ["run.json", "plan.toml"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_run_with_no_file_in_place_of_one_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text("{}")
    (run / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(run / name)
    else:
        (run / name).symlink_to("/dev/zero")
    for command in (("lab", "report", str(run)), ("lab", "resume", str(run))):
        ended = ran_apart(*command, seconds=30)
        assert ended.status == 2
        assert "error: " in ended.trouble
        assert "Traceback" not in ended.err


def test_a_replay_of_an_endless_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").symlink_to("/dev/zero")
    ended = ran_apart("replay", str(tmp_path / "result.json"), seconds=30)
    assert ended.status == 2
    assert "larger than" in ended.trouble
