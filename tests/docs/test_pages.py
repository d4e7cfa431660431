"""The pages are true: their code runs, their links lead somewhere, and none is longer than a person reads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from firecircle.catalog import seatable_families
from firecircle.names import FAMILY, has_neural_weights
from tests.cli.running import flowing, ran_apart

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "tutorial").glob("*.md")))
CODE = re.compile(r"^```([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
TABLE = re.compile(r"^\|.*$", re.MULTILINE)
LONGEST_PAGE = 700
"""Words outside code and tables: some three minutes."""


class Block(NamedTuple):
    """A piece of code on a page."""

    page: Path
    language: str
    code: str


BLOCKS = [
    Block(page, language, code) for page in PAGES for language, code in CODE.findall(page.read_text("utf-8"))
]


def blocks(language: str) -> list[object]:
    chosen = [block for block in BLOCKS if block.language == language]
    return [pytest.param(block.code, id=f"{block.page.stem}-{i}") for i, block in enumerate(chosen, start=1)]


@pytest.mark.parametrize("code", blocks("python"))
def test_documented_python_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "<documentation>", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out


@pytest.mark.parametrize("code", blocks("toml"))
def test_documented_toml_can_be_read(code: str) -> None:
    assert tomllib.loads(code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_page_is_longer_than_a_person_reads(page: Path) -> None:
    words = TABLE.sub("", CODE.sub("", page.read_text("utf-8"))).split()
    assert len(words) <= LONGEST_PAGE, f"{page.name} has {len(words)} words: split it by what it answers"


def test_the_documentation_stays_small() -> None:
    """Besides the reference, which is written from the code, and the changelog."""
    pages = [page for page in PAGES[1:] if page.stem != "changelog"]
    assert len(pages) <= 40
    everything = [*pages, *(DOCS / "decisions").glob("*.md")]
    assert sum(len(page.read_text("utf-8").split()) for page in everything) <= 30_000


def test_decisions_are_few_and_short() -> None:
    """A record is for a choice that a successor would question; measurements go to the notes pages."""
    records = sorted((DOCS / "decisions").glob("*.md"))
    assert len(records) <= 25
    long = {path.name: count for path in records if (count := len(path.read_text("utf-8").split())) > 300}
    assert not long


def test_every_block_says_its_language() -> None:
    silent = [f"{block.page.name}: {block.code[:60]!r}" for block in BLOCKS if not block.language]
    assert not silent


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Broken links, pages that no list leads to and docstrings that cannot be set are warnings."""
    build = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--builder", "html"]
    done = subprocess.run([*build, DOCS, tmp_path], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "FireCircleConfig" in (tmp_path / "searchindex.js").read_text("utf-8")
    batch = (tmp_path / "reference" / "command-batch.html").read_text("utf-8")
    assert "Judge many prompts" in batch


NAMES_A_FAMILY = re.compile(r"\bfamily:([a-z][\w-]*)")


def test_every_family_that_is_named_exists() -> None:
    """On the pages, and in what the commands say of themselves."""
    told = [*PAGES, ROOT / "SECURITY.md", *(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.toml")]
    named = {name: path.name for path in told for name in NAMES_A_FAMILY.findall(path.read_text("utf-8"))}
    assert len(named) > 3
    unknown = {name: page for name, page in named.items() if FAMILY + name not in seatable_families()}
    assert not unknown


def test_the_files_of_the_readme_come_with_it() -> None:
    commands = [block.code for block in BLOCKS if block.page.stem == "README" and block.language == "console"]
    named = set(re.findall(r"[\w-]+\.(?:txt|csv|toml)\b", "\n".join(commands)))
    assert named - {"results.csv"} == {path.name for path in (ROOT / "examples" / "files").iterdir()}


def test_the_page_on_the_lab_shows_what_the_validation_says(tmp_path: Path) -> None:
    """Over the bundled examples: seconds with the embedded readers."""
    pytest.importorskip("duckdb", reason="the extra `lab` is not installed")
    if not has_neural_weights():
        pytest.skip("the page shows three readers; the weights of the neural one are not installed")
    ran = ran_apart("lab", "study", "validation", "--no-save", "--out", str(tmp_path / "run"), seconds=300)
    page = (DOCS / "lab.md").read_text("utf-8")
    told = flowing(ran.out + ran.err)
    for shown, said in (
        (r"mean influence ([\d.]+) on 90 attacks", r"\| \*\*FAIL\*\*: mean influence ([\d.]+) on 90"),
        (r"circle found (\d+) that one voice missed", r"\| pass: (\d+) attacks more than one voice"),
        (r"raised (\d+) more false alarms", r"one voice, (\d+) more false alarms"),
    ):
        in_command, on_page = re.search(shown, told), re.search(said, page)
        assert in_command, told
        assert on_page
        assert on_page[1] == in_command[1]
