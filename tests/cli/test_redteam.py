"""`firecircle redteam`: a table, JSON, and a report that the viewer finds."""

from __future__ import annotations

import json

import pytest

from firecircle.cli.main import run
from firecircle.lab.redteam.reports import kept_reports

FEW = ["redteam", "--attacks", "order,always_1", "--layers", "user", "--prompts", "2", "--rounds", "2"]


def test_a_table_and_a_kept_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FEW) == 1
    shown = capsys.readouterr().out
    assert "order in user" in shown
    assert "member always_1" in shown
    assert "Kept for the viewer" in shown
    ((_, report),) = kept_reports()
    assert report is not None
    assert [outcome.title for outcome in report.outcomes] == ["order in user", "member always_1"]


def test_json_keeps_nothing_unless_it_may(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*FEW[:2], "order", *FEW[3:], "--no-save", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["outcomes"][0]["succeeded"]["hits"] == 0
    assert not list(kept_reports())


def test_attacks_are_listed_and_a_wrong_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["redteam", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 32
    assert run(["redteam", "--attacks", "bribe"]) == 2
    assert "use always_0" in capsys.readouterr().err
