from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.running import Ran, assert_one_line_of_trouble, ran_apart
from tests.lab.hosting import CIRCLE, arm, opinion, plan_text
from tests.loopback import LoopbackServer, Script

PLAN = plan_text(CIRCLE, arm("single"), before='name = "small"\n')


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def plan(folder: Path) -> str:
    (folder / "plan.toml").write_text(PLAN)
    return "plan.toml"


def test_a_run_from_estimate_to_comparison(
    cli: Callable[..., Ran], plan: str, hosted: Callable[[Script], LoopbackServer]
) -> None:
    server = hosted(opinion)
    estimate = json.loads(cli("lab", "estimate", plan, "--json").out)
    assert [arm["calls"] for arm in estimate["arms"]] == [36, 4]
    assert estimate["arms"][0]["cost_usd"] > estimate["arms"][1]["cost_usd"] > 0
    assert not server.requests

    first = json.loads(cli("lab", "run", plan, "--json").out)
    assert first["state"] == "finished"
    assert first["arms"]["circle"]["records"] == 4
    assert len(server.requests) == first["arms"]["circle"]["calls"] + first["arms"]["single"]["calls"]
    assert first["spent"]["usd"] > 0
    assert sum(estimate_of["calls"] for estimate_of in estimate["arms"]) >= len(server.requests)

    told = cli("lab", "run", plan)
    assert told.status == 0
    assert "circle" in told.out
    assert "finished: " in told.out
    listed = json.loads(cli("lab", "list", "--json").out)
    assert [run["state"] for run in listed] == ["finished", "finished"]
    assert "finished" in cli("lab", "list").out

    compared = json.loads(cli("lab", "compare", first["run_id"], listed[0]["run_id"], "--json").out)
    assert compared["same_plan"] is True
    assert [arm["beside"]["shared"] for arm in compared["arms"]] == [4, 4]
    assert (
        "the same prompts, plan and voices" in cli("lab", "compare", first["run_id"], listed[0]["run_id"]).out
    )

    again = json.loads(cli("lab", "resume", first["run_id"], "--json").out)
    assert again["state"] == "finished"
    assert again["arms"] == first["arms"]


def test_damage_to_a_finished_run_is_told(cli: Callable[..., Ran], folder: Path) -> None:
    models = '["embedded:time", "embedded:layers"]\nenforce_quorum = false\n'
    (folder / "plan.toml").write_text(
        'name = "small"\n[[datasets]]\npath = "examples"\nsample = 2\n[circle]\nmodels = '
        + models
        + '[[arms]]\nname = "circle"\nkind = "fire_circle"\n'
    )
    assert cli("lab", "run", "plan.toml", "--out", "run", "--no-save").status == 0
    table, journal = folder / "run" / "records.parquet", folder / "run" / "journal.sqlite"
    written = table.read_bytes()

    damaged = bytearray(written)
    damaged[len(damaged) // 2] ^= 4
    table.write_bytes(damaged)
    refused = cli("lab", "report", "run")
    assert_one_line_of_trouble(refused, "was changed since the run was finished; `firecircle lab run")
    mended = cli("lab", "resume", "run", "--no-save")
    assert mended.status == 0
    assert "records.parquet was changed since it was written; rewritten from the journal" in mended.err
    assert table.read_bytes() == written

    with closing(sqlite3.connect(journal)) as file, file:
        file.execute("UPDATE records SET f = f / 2")
    told = cli("lab", "report", "run")
    assert told.status == 0
    assert "warning: " in told.err
    assert "the journal is damaged: record " in told.err
    refused = cli("lab", "resume", "run")
    assert_one_line_of_trouble(refused, "the journal is damaged: record ", "restore the file from a copy")


def test_a_budget_stops_a_run_with_status_1_and_says_how_it_goes_on(
    cli: Callable[..., Ran], plan: str, folder: Path, hosted: Callable[[Script], LoopbackServer]
) -> None:
    hosted(opinion)
    (folder / plan).write_text(PLAN + "[budget]\ntokens = 60_000\n[concurrency]\ncalls = 3\n")
    ran = cli("lab", "run", plan)
    assert ran.status == 1
    assert "stopped: the budget is spent" in ran.out
    unfinished = cli("lab", "report", "last")
    assert_one_line_of_trouble(unfinished, "unfinished", "lab run")
    (folder / plan).write_text(PLAN + "[budget]\ntokens = 40_000_000\n")
    assert cli("lab", "run", plan).status == 0


def test_init_writes_a_plan_once(cli: Callable[..., Ran], folder: Path) -> None:
    assert cli("lab", "init", "first.toml").status == 0
    assert json.loads(cli("lab", "estimate", "first.toml", "--json").out)["total"]["tokens"] == 0
    assert_one_line_of_trouble(cli("lab", "init", "first.toml"), "already there")


def test_a_study_prints_its_plan_to_be_changed(cli: Callable[..., Ran], folder: Path) -> None:
    text = cli("lab", "study", "quorum", "--plan").out
    (folder / "own.toml").write_text(text)
    assert json.loads(cli("lab", "study", "quorum", "--plan", "--json").out)["name"] == "quorum"
    assert cli("lab", "estimate", "own.toml").status == 0


def test_the_validation_study_tells_its_three_tests(folder: Path) -> None:
    ran = ran_apart("lab", "study", "validation", "--sample", "12", "--json", COLUMNS="80")
    assert ran.status == 0, ran.err
    told = json.loads(ran.out)["validation"]["tests"]
    assert [test["name"] for test in told] == [
        "the empty chair is not performative",
        "patterns are discovered",
        "the cost buys detection",
    ]
    assert "12 records" in ran.err
    report = json.loads(ran.out)["report"]
    assert Path(report["page"]).exists(), "a study is reported on whoever reads it"
    assert report["sentences"][0]["part"] == "first"
    listed = ran_apart("lab", "list", COLUMNS="40").out
    assert json.loads(ran.out)["run_id"] in listed, "nothing is cut where there is no terminal"
    assert "…" not in listed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "none.toml"), ["none.toml", "lab init FILE"]),
        (("resume", "nothing"), ["there is no 'nothing'", "lab report"]),
        (("study", "dialog"), ["there is no 'dialog'", "validation"]),
        (("study", "chair", "--data", "none.jsonl"), ["none.jsonl"]),
        (
            ("study", "chair", "--models", "nobody/knows,nobody/else"),
            ["[arms.circle]", "lacks valid quorum"],
        ),
        (("compare", "one", "two"), ["one is not a saved batch, run or circle"]),
    ],
)
def test_mistakes_are_one_line(
    cli: Callable[..., Ran], folder: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    assert_one_line_of_trouble(cli("lab", *arguments), *words)


def test_an_empty_dataset_and_a_strange_label_are_told(cli: Callable[..., Ran], folder: Path) -> None:
    (folder / "empty.jsonl").write_text("")
    assert_one_line_of_trouble(cli("lab", "study", "chair", "--data", "empty.jsonl"), "has no record")
    (folder / "odd.jsonl").write_text('{"user": "hello", "label": "purple"}\n')
    assert_one_line_of_trouble(cli("lab", "study", "chair", "--data", "odd.jsonl"), "all 1 rows are bad")


def test_a_run_in_a_folder_of_its_own_is_listed(
    cli: Callable[..., Ran], plan: str, folder: Path, hosted: Callable[[Script], LoopbackServer]
) -> None:
    hosted(opinion)
    assert cli("lab", "run", plan, "--out", "mine", "--json").status == 0
    listed = json.loads(cli("lab", "list", "--json").out)
    assert str(folder / "mine") in json.dumps(listed)
