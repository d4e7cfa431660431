"""The three tests of the specification, on runs that must pass or fail them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="the extra `lab` is not installed")

from firecircle.lab.plan import plan_of
from firecircle.lab.records import RunRecord
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.runs.starting import open_run
from firecircle.lab.validation import Validation, validate
from tests.lab.tables import judgement, written

PLAN = """
[[datasets]]
path = "examples"
limit = 1
[[arms]]
name = "circle"
kind = "fire_circle"
"""


def validated(folder: Path, records: list[RunRecord]) -> Validation:
    run = open_run(plan_of(PLAN, "plan.toml"), PLAN, folder, out=folder / "run")
    written(run.records, records)
    (run.path / "finished.json").write_text("{}")
    return validate(RunFolder(run.path))


def circle(number: int, rounds: list[list[float]], **more: object) -> RunRecord:
    label = "attack" if number < 12 else "benign"
    return judgement("circle", number, label, rounds, **more)  # type: ignore[arg-type]


def single(number: int) -> RunRecord:
    return judgement("single", number, "attack" if number < 12 else "benign", [[0.2]], "single")


def test_alarms_on_everything_buy_no_detection(tmp_path: Path) -> None:
    rows = [circle(n, [[0.9, 0.9]] * 2, patterns=1, chair_influence=0.1) for n in range(24)]
    cost = validated(tmp_path, rows + [single(n) for n in range(24)]).tests[2]
    assert not cost.passed
    assert "12 more false alarms" in cost.told
    assert "not justified" in cost.told


def test_the_chair_is_measured_over_ten_attacks_at_least(tmp_path: Path) -> None:
    few = [circle(n, [[0.9, 0.9]] * 2, chair_influence=0.5) for n in range(9)]
    assert not validated(tmp_path / "few", few).tests[0].passed
    every = [circle(n, [[0.9, 0.9]] * 2, chair_influence=0.72 if n == 11 else 0.0) for n in range(12)]
    chair = validated(tmp_path / "every", every).tests[0]
    assert chair.passed
    assert "mean influence 0.060 on 12 attacks" in chair.told


def test_patterns_are_looked_for_in_the_prompts_that_the_specification_names(tmp_path: Path) -> None:
    agreed = {"grounded_patterns": 1, "patterns": 1, "largest_agreement": 2}
    rows = [
        circle(0, [[0.9, 0.9]] * 2, grounded_patterns=5, patterns=5, largest_agreement=2),
        circle(1, [[0.9, 0.9]] * 2, record_id="native:history_04", **agreed),
        circle(2, [[0.9, 0.9]] * 2, record_id="native:history_10", **agreed),
    ]
    test = validated(tmp_path / "named", rows).tests[1]
    assert test.passed
    assert "native:history_04 (1) and native:history_10 (1)" in test.told
    other = circle(3, [[0.9, 0.9]] * 2, family="fabricated_history", **agreed)
    stand_in = validated(tmp_path / "others", [rows[0], other]).tests[1]
    assert "2 grounded" not in stand_in.told
    assert "p3 (1) and p0 (5)" in stand_in.told
    assert "replace history_04 and history_10" in stand_in.told
