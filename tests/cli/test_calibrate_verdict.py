"""`firecircle calibrate --verdict`: fitted on labelled circles, kept, listed, used, removed, or refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from firecircle import MultiNeutrosophicPrompt, fire_circle_evaluate
from firecircle.store.opening import open_store
from tests.cli.running import Ran, assert_one_line_of_trouble
from tests.lab.test_calibrated import words
from tests.scripted import Script, circle

Cli = Callable[..., Ran]


async def _circles(path: Path, n: int, *, loud: bool = True) -> None:
    made = words(n, loud=loud).falsehood
    with path.open("w", encoding="utf-8") as file:
        for at in range(n):
            lines = {
                "knows": [0.5 if np.isnan(made[at, 0, 0]) else float(made[at, 0, 0])],
                "loud": [float(made[at, 1, 0])],
            }
            prompt = MultiNeutrosophicPrompt(user=f"prompt {at}")
            result = await fire_circle_evaluate(prompt, circle(*lines, max_rounds=1), caller=Script(lines))
            row = {"label": "benign" if at % 2 else "attack", "result": result.model_dump(mode="json")}
            file.write(json.dumps(row) + "\n")


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 real circles of two scripted voices, one of which cries wolf."""
    path = tmp_path_factory.mktemp("circles") / "circles.jsonl"
    asyncio.run(_circles(path, 120))
    return path


def test_a_user_fits_keeps_lists_uses_and_removes_one(cli: Cli, labelled: Path, tmp_path: Path) -> None:
    where = ("--store", str(tmp_path / "kept.sqlite"))
    shown = cli("calibrate", "--verdict", "--circles", str(labelled), *where)
    assert shown.status == 0
    assert "60 attacks and 60 benign prompts" in shown.out
    assert "nothing was saved; --write saves it" in shown.out
    assert "calibrated" in shown.out
    kept = cli("calibrate", "--verdict", "--circles", str(labelled), "--write", "--json", *where)
    document = json.loads(kept.out)
    assert document["kept"]
    name = document["fit"]["id"]
    assert name in cli("calibrate", "--list", *where).out
    with open_store(where[1]) as store:
        known = store.verdicts.find(("loud", "knows"), 1)
        assert known is not None
        assert len(store.verdicts.fitted_on(name)) == 120

        async def judge() -> tuple[float | None, bool]:
            lines = {"knows": [0.2], "loud": [0.95]}
            config = circle(*lines, max_rounds=1, alarm_rule="calibrated")
            result = await fire_circle_evaluate(
                MultiNeutrosophicPrompt(user="hello"), config, caller=Script(lines), store=store
            )
            return result.calibrated, result.alarm

        probability, alarm = asyncio.run(judge())
    assert probability is not None
    assert probability < 0.5
    assert not alarm
    assert cli("calibrate", "--remove", name[:4], *where).out == f"removed {name}\n"
    assert name not in cli("calibrate", "--list", *where).out


def test_it_is_refused_in_one_line_where_it_does_not_beat_the_maximum(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "same.jsonl"
    asyncio.run(_circles(path, 100, loud=False))
    ran = cli("calibrate", "--verdict", "--circles", str(path), "--store", str(tmp_path / "kept.sqlite"))
    assert_one_line_of_trouble(ran, "does not beat it", "keep the highest F")


def test_too_few_circles_and_arms_without_a_run_are_refused(cli: Cli, labelled: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("".join(labelled.read_text().splitlines(keepends=True)[:20]), encoding="utf-8")
    where = ("--store", str(tmp_path / "kept.sqlite"))
    assert_one_line_of_trouble(
        cli("calibrate", "--verdict", "--circles", str(few), *where), "10 attacks and 10 benign", "50 of each"
    )
    assert_one_line_of_trouble(cli("calibrate", "--verdict", "--arm", "x", *where), "--arm", "--run")


def test_thresholds_for_a_stated_error_are_proposed(cli: Cli, labelled: Path, tmp_path: Path) -> None:
    where = ("--circles", str(labelled), "--store", str(tmp_path / "kept.sqlite"))
    assert "too few labelled prompts, or too many errors" in cli("calibrate", "--error", "0.05", *where).out
    proposed = json.loads(cli("calibrate", "--error", "0.4", "--json", *where).out)
    assert proposed["error"] == 0.4
    assert (proposed["attacks"], proposed["benign"]) == (60, 60)
    refused = cli("calibrate", "--error", "0.05", "--write", *where)
    assert_one_line_of_trouble(refused, "--error")


async def test_the_proposed_threshold_decides_what_is_unsure() -> None:
    prompt = MultiNeutrosophicPrompt(user="hello")
    for unsure_threshold, word in ((None, "no_alarm"), (0.2, "unsure")):
        config = circle("a", "b", max_rounds=1, unsure_threshold=unsure_threshold)
        lines = {"a": [0.3], "b": [0.1]}
        result = await fire_circle_evaluate(prompt, config, caller=Script(lines))
        assert result.verdict == word
