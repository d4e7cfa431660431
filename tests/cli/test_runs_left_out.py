"""Several arms of a run judge the same prompts: its circles teach only when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from firecircle import fire_circle_evaluate
from firecircle.store.opening import Store, open_store
from firecircle.store.sitting import InRun
from tests.cli.running import Ran, assert_one_line_of_trouble, flowing
from tests.scripted import PROMPT, Script, circle, pattern, says
from tests.store.bank.test_blindspots import turned
from tests.store.samples import VOICES

Cli = Callable[..., Ran]


async def of_a_run(store: Store, arm: str, label: str = "attack:temporal_inconsistency") -> None:
    """A circle of a run whose voices saw the attack only once they talked."""
    said = says(0.9, patterns_observed=[pattern("temporal_inconsistency")])
    script = Script({voice: [0.1, said] for voice in VOICES})
    recording = store.recorder.recording(label=label, place=InRun("nightly", arm, "r-1"))
    await fire_circle_evaluate(PROMPT, circle(*VOICES, max_rounds=2), caller=script, on_event=recording.tell)
    await recording.settled()


@pytest.fixture
async def where(tmp_path: Path) -> str:
    """One circle by itself, and two arms of a run over the same prompt."""
    path = str(tmp_path / "kept.sqlite")
    with open_store(path) as store:
        await turned(store)
        for arm in ("one", "two"):
            await of_a_run(store, arm)
    return path


@pytest.mark.parametrize(("options", "circles"), [((), 1), (("--in-run",), 2), (("--run", "nightly"), 2)])
def test_blind_spots_and_the_bank_go_by_other_circles(
    cli: Cli, where: str, options: tuple[str, ...], circles: int
) -> None:
    at = (*options, "--store", where, "--json")
    spots, learnt = (json.loads(cli(*words, *at).out) for words in (["blindspots"], ["bank", "learn"]))
    assert spots["circles"]["total"] == circles
    assert spots["groups"][0]["overlooked"]["total"] == 1, "the same prompt in every circle"
    assert learnt["circles"] == circles
    assert spots["of_runs_left_out"] == learnt["of_runs_left_out"] == (0 if options else 2)


def test_it_is_told_that_they_are_left_out(cli: Cli, where: str) -> None:
    for command in (["blindspots"], ["bank", "learn"]):
        assert "2 circles of runs left out (--where in_run=yes, or run=ID" in flowing(
            cli(*command, "--store", where).out
        )
        assert "left out" not in cli(*command, "--store", where, "--in-run").out


async def test_calibrate_says_why_labelled_circles_do_not_count(cli: Cli, tmp_path: Path) -> None:
    path = str(tmp_path / "runs.sqlite")
    with open_store(path) as store:
        await of_a_run(store, "one")
        await of_a_run(store, "one", label="benign:general")
    ran = cli("calibrate", "--store", path)
    assert_one_line_of_trouble(
        ran, "no circle outside of runs", "2 labelled circles of runs left out", "--run"
    )


async def test_calibrate_counts_a_voice_once_for_each_prompt_of_a_run(cli: Cli, tmp_path: Path) -> None:
    path = str(tmp_path / "runs.sqlite")
    with open_store(path) as store:
        for arm in ("one", "two"):
            await of_a_run(store, arm)
        await of_a_run(store, "one", label="odd")
        await turned(store, label=None)
    at = ("calibrate", "--run", "nightly", "--store", path)
    document = json.loads(cli(*at, "--json").out)
    assert document["circles"] == 1
    assert (document["left_out"]["same_prompt"], document["left_out"]["other_labels"]) == (1, {"odd": 1})
    assert {proposal["circles"] for proposal in document["proposals"]} == {1}
    lines = cli(*at).out.splitlines()
    assert "1 circle left out: the same voices judged the prompt before" in lines
    assert "1 circle left out: labelled neither attack nor benign (odd)" in lines
    said = [line for line in lines if "left out" in line]
    assert len(said) == len(set(said))
    assert_one_line_of_trouble(cli(*at, "--circles", "x.jsonl"), "leave one of them out")
