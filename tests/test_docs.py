"""The code in README and guide runs as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from firecircle.circle.answer import answer_format
from firecircle.circle.questions import template
from firecircle.circle.result import RoundKind

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(CODE.findall(page.read_text("utf-8")), start=1)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_documented_code_runs(block: str, tmp_path: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=tmp_path,
        env=bare,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_dialogue_of_the_guide_is_one_of_today() -> None:
    guide = (ROOT / "docs" / "guide.md").read_text("utf-8")
    assert template("system").strip() in guide
    kinds: tuple[RoundKind, ...] = ("discussion", "synthesis")
    assert answer_format("baseline") in guide
    for kind in kinds:
        assert answer_format(kind) in guide
        assert answer_format(kind, is_chair=True) in guide
