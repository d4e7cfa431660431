"""Recorded judgements: the figures of the shared file, and of small files with every flaw."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from firecircle import ConfigError
from firecircle.cli.lab.recorded import findings, print_recorded
from firecircle.cli.printable import printable_line
from firecircle.lab.recorded import RecordedStudy, recorded_study
from tests.shared_data import shared


@pytest.fixture(scope="module")
def study() -> RecordedStudy:
    return recorded_study(shared("recorded_judgments.jsonl"))


def write(path: Path, rows: list[tuple[str, dict[str, float | None]]]) -> Path:
    lines = []
    for number, (label, said) in enumerate(rows):
        evaluations = {
            model: None if f is None else {"T": 1 - f, "I": 0.1, "F": f} for model, f in said.items()
        }
        lines.append(json.dumps({"prompt_id": f"p{number}", "label": label, "evaluations": evaluations}))
    path.write_text("\n".join(lines), "utf-8")
    return path


def printed(study: RecordedStudy) -> str:
    screen = StringIO()
    print_recorded(Console(file=screen, width=140, markup=False, color_system=None), study, printable_line)
    return screen.getvalue()


def test_the_models_rates_at_the_alarm_threshold(study: RecordedStudy) -> None:
    assert (study.prompts, study.attacks, study.benign, study.in_no_rate) == (
        239,
        124,
        114,
        {"borderline": 1},
    )
    counts = {
        row.name.rpartition("/")[2]: (
            row.performance.at_threshold.found,
            row.performance.at_threshold.recall.n,
            row.performance.at_threshold.false_alarms,
            row.performance.at_threshold.false_alarm_rate.n,
        )
        for row in study.rows
    }
    assert counts == {
        "claude-sonnet-4.5": (86, 120, 14, 114),
        "kimi-k2-0905": (86, 124, 19, 114),
        "deepseek-v3.1-terminus": (75, 124, 12, 114),
        "gpt-4o": (28, 123, 1, 114),
        "max": (103, 124, 31, 114),
        "mean (parallel)": (42, 124, 2, 114),
        "median": (70, 124, 4, 114),
        "majority": (64, 124, 4, 114),
    }


def test_the_maximum_buys_recall_with_false_alarms(study: RecordedStudy) -> None:
    recalls = [size.recall.value for size in study.by_size]
    alarms = [size.false_alarm_rate.value for size in study.by_size]
    assert recalls == sorted(recalls, key=lambda value: value or 0)
    assert alarms == sorted(alarms, key=lambda value: value or 0)
    mean = next(row for row in study.rows if row.name == "mean (parallel)")
    assert mean.found_against_max.only_first == 0
    assert mean.found_against_max.only_second == 103 - 42
    assert mean.passed_against_max.only_first == 31 - 2


def test_fitted_ways_find_more_at_the_same_rate(study: RecordedStudy) -> None:
    by_name = {row.name: row.same_rate_as_max for row in study.calibrated}
    assert by_name["max"].recall_at_target == pytest.approx(103 / 124)
    assert by_name["max"].target == pytest.approx(31 / 114)
    for name in ("mean (parallel)", "weights on F", "weights on T, I and F"):
        told = by_name[name]
        assert told.recall_at_target is not None
        assert told.recall_at_target > 103 / 124
        assert told.false_alarm_rate.low is not None
        assert told.false_alarm_rate.high is not None
        assert told.false_alarm_rate.low < told.target < told.false_alarm_rate.high


def test_the_study_round_trips_through_json(study: RecordedStudy) -> None:
    assert RecordedStudy.model_validate_json(study.model_dump_json()) == study


def test_the_screen_shows_every_way_and_says_what_it_comes_to(study: RecordedStudy) -> None:
    text = printed(study)
    for row in study.rows:
        assert row.name in text
    assert (
        "finds 103 of 124 attacks (83%) and raises 31 false alarms on 114 benign prompts (27%)"
        in " ".join(text.split())
    )


def test_missing_answers_and_unknown_labels_are_counted(tmp_path: Path) -> None:
    path = write(
        tmp_path / "d.jsonl",
        [
            ("manipulative", {"a": 0.9, "b": None}),
            ("extractive", {"a": None, "b": None}),
            ("reciprocal", {"a": 0.1, "b": 0.8}),
            ("borderline", {"a": 0.1}),
        ],
    )
    with path.open("a") as file:
        file.write('\n{"prompt_id": "x", "label": "odd", "evaluations": {}}\nnot json\n')
        file.write(
            '{"prompt_id": "y", "label": "reciprocal", "evaluations": {"a": {"T": 0, "I": 0, "F": 1.5}}}'
        )
    told = recorded_study(path)
    assert (told.prompts, told.attacks, told.benign) == (4, 2, 1)
    assert told.unanswered == {"a": 1, "b": 3}
    assert [row.split(":")[0] for row in told.bad_rows] == ["line 5", "line 6", "line 7"]
    rows = {row.name: row.performance for row in told.rows}
    assert (rows["max"].attacks, rows["max"].missing) == (1, 1)
    assert rows["b"].at_threshold.recall.note == "there is no attack to find"
    assert "needed to hold some out" in (told.calibrated[0].low_rate.recall.note or "")
    assert "line 6" in printed(told)
    assert findings(told)


def test_a_model_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    rows: list[tuple[str, dict[str, float | None]]] = [("reciprocal", {"\x1b[2Jevil[bold]": 0.1})]
    text = printed(recorded_study(write(tmp_path / "d.jsonl", rows)))
    assert "\x1b" not in text
    assert "evil[bold]" in text


@pytest.mark.parametrize(
    "content", ["", "{}", '{"prompt_id": "x", "label": "reciprocal", "evaluations": {}}']
)
def test_a_file_without_judgements_is_told(content: str, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(content)
    with pytest.raises(ConfigError, match="no recorded judgement in it"):
        recorded_study(path)
    with pytest.raises(ConfigError, match="No such file"):
        recorded_study(tmp_path / "none.jsonl")
