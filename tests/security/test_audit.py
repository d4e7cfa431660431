"""The audit of dependencies: what it says of an answer, of none, and of an earlier one about the same versions."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from security.audit import KEPT, PINNED, audit

CLEAN = {
    "dependencies": [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "unknown"}]
}
FLAWED = {
    "dependencies": [
        {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"], "aliases": []}]}
    ]
}
NOT_REACHED = {"dependencies": [{"name": "a", "skip_reason": "not found"}]}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in PINNED:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a==1\n", encoding="utf-8")
    (tmp_path / KEPT).parent.mkdir()
    return tmp_path


def answering(document: object) -> list[str]:
    """A command that answers as pip-audit would."""
    return [sys.executable, "-c", f"print({json.dumps(document)!r})", "--"]


def test_what_is_vulnerable_is_named(repository: Path) -> None:
    status, words = audit(answering(FLAWED), repository)
    assert status == 1
    assert "a 1: PYSEC-1 (fixed in 2)" in words


def test_an_earlier_answer_about_the_same_versions_counts(repository: Path) -> None:
    assert audit(answering(CLEAN), repository) == (
        0,
        "1 pinned versions audited, 1 unknown to the database: none is known to be vulnerable",
    )
    status, words = audit(answering(NOT_REACHED), repository)
    assert status == 0
    assert ", as of 20" in words
    (repository / PINNED[0]).write_text("a==2\n", encoding="utf-8")
    assert audit(answering(NOT_REACHED), repository)[1].startswith("audit skipped")


def test_no_database_is_told_and_no_failure(repository: Path) -> None:
    broken = [sys.executable, "-c", "raise SystemExit('no route')", "--"]
    assert audit(broken, repository)[1].startswith("audit skipped")
