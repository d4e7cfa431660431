"""A ninth pattern type is one file and one line: every question names it and the readers still judge."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import firecircle

PACKAGE = Path(firecircle.__file__).parent
LINE = '    FALSE_AUTHORITY = "false_authority"\n'


def test_a_ninth_type_is_one_file_and_one_line(tmp_path: Path) -> None:
    package = tmp_path / "firecircle"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    names = package / "names.py"
    names.write_text(
        names.read_text("utf-8").replace(LINE, f'{LINE}    EMOTIONAL_PRESSURE = "emotional_pressure"\n')
    )
    types = package / "circle/pattern_types"
    like_it = (types / "false_authority.toml").read_text("utf-8")
    (types / "emotional_pressure.toml").write_text(like_it.replace("claimed rank", "guilt", 1))

    def run(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=240
        )
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    example = ("evaluate", "--example", "role_confusion-04-attack", "--offline", "--no-save", "--json=full")
    told = json.loads(run("-m", "firecircle", *example))
    assert told["verdict"] == "alarm"
    assert told["failures"] == []
    asked = ["emotional_pressure" in json.dumps(held["voice_prompts"]) for held in told["dialogue_history"]]
    assert asked[:2] == [False, True], "round 1 names no pattern type"
