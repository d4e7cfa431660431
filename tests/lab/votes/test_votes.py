"""The effective number of voices, checked on simulated judges, and read from files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from firecircle.circle.quorum import effective_voices
from firecircle.cli.main import run
from firecircle.errors import ConfigError
from firecircle.lab.votes import Votes, independence, read_votes, report_on_votes
from firecircle.names import Label


def simulated(judges: int, phi: float, n: int, seed: int) -> Votes:
    """Each item: with probability phi all judges share one error, else each errs for itself."""
    rng = np.random.default_rng(seed)
    attack = rng.random(n) < 0.5
    shared = rng.random(n) < phi
    wrong = np.where(shared, rng.random(n) < 0.3, rng.random((judges, n)) < 0.3)
    labels: tuple[Label, ...] = tuple("attack" if each else "benign" for each in attack)
    return Votes(tuple("ABCDEFGHI"[:judges]), (wrong != attack).astype(float), labels, np.full(n, 0.5))


@pytest.mark.parametrize(("judges", "phi"), [(3, 0.2), (3, 0.5), (9, 0.4)])
def test_known_correlation_gives_its_effective_number(judges: int, phi: float) -> None:
    known = effective_voices(judges, phi)
    found = [independence(simulated(judges, phi, 1000, seed)).effective for seed in range(10)]
    assert np.mean([each.value or 0 for each in found]) == pytest.approx(known, abs=0.1)
    assert sum((each.low or 0) <= known <= (each.high or 0) for each in found) >= 8


def test_wide_long_and_nested_files_are_the_same(tmp_path: Path) -> None:
    table = simulated(3, 0.3, 60, 1)
    wide, long, nested = tmp_path / "w.csv", tmp_path / "l.csv", tmp_path / "n.jsonl"
    items = list(zip(table.labels, table.scores.T.tolist(), strict=True))
    with wide.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["id", "label", *"ABC"], *([i, x, *s] for i, (x, s) in enumerate(items, 1))]
        )
    with long.open("w", newline="") as file:
        rows = [[i, x, j, v] for i, (x, s) in enumerate(items, 1) for j, v in zip("ABC", s, strict=True)]
        csv.writer(file).writerows([["item", "label", "judge", "score"], *rows])
    nested.write_text(
        "".join(json.dumps({"label": x, "votes": dict(zip("ABC", s, strict=True))}) + "\n" for x, s in items)
    )
    for path in (wide, long, nested):
        assert independence(read_votes(path)) == independence(table)


def test_logs_of_other_tools_are_the_same_votes(tmp_path: Path) -> None:
    table = simulated(3, 0.3, 60, 1)
    items = list(zip(table.labels, table.scores.T.tolist(), strict=True))
    inspect, promptfoo = tmp_path / "log.json", tmp_path / "results.json"
    samples = [
        {
            "id": number,
            "epoch": 1,
            "target": label,
            "scores": {
                judge: {"value": "C" if (vote == 1) == (label == "attack") else "I"}
                for judge, vote in zip("ABC", votes, strict=True)
            },
        }
        for number, (label, votes) in enumerate(items)
    ]
    inspect.write_text(json.dumps({"version": 2, "eval": {"task": "judges"}, "samples": samples}))
    answers = [
        {"testIdx": number, "provider": {"id": judge}, "score": vote, "vars": {"label": label}}
        for number, (label, votes) in enumerate(items)
        for judge, vote in zip("ABC", votes, strict=True)
    ]
    promptfoo.write_text(json.dumps({"evalId": "eval-1", "results": {"version": 3, "results": answers}}))
    for path in (inspect, promptfoo):
        assert independence(read_votes(path)) == independence(table)
    other = tmp_path / "other.json"
    other.write_text("[1, 2]")
    with pytest.raises(ConfigError, match="neither an Inspect log nor a promptfoo result"):
        read_votes(other)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, path = simulated(3, 0.3, 200, 2), tmp_path / "n.jsonl"
    path.write_text(
        "".join(
            json.dumps({"label": x, "votes": dict(zip("ABC", s, strict=True))}) + "\n"
            for x, s in zip(table.labels, table.scores.T.tolist(), strict=True)
        )
    )
    assert run(["lab", "votes", str(path)]) == 0
    assert "3 voices ≈" in capsys.readouterr().out


def test_an_item_named_0_is_not_another_row(tmp_path: Path) -> None:
    path = tmp_path / "z.jsonl"
    rows = [{"id": i, "votes": {"A": 1, "B": 0}} for i in (1, 0)] + [{"votes": {"A": 1, "B": 0}}] * 2
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(read_votes(path).labels) == 4


def test_an_unknown_label_is_named(tmp_path: Path) -> None:
    path = tmp_path / "u.jsonl"
    path.write_text(json.dumps({"label": "odd", "votes": {"A": 1, "B": 0}}) + "\n")
    with pytest.raises(ConfigError, match="'odd' is neither"):
        read_votes(path)


def test_many_judges_are_chosen_one_by_one() -> None:
    """Of 24 judges there are 2.7 million subsets of 12; the three that know are in the one found."""
    rng = np.random.default_rng(5)
    attack = rng.random(300) < 0.5
    scores = rng.random((24, 300))
    scores[20:23] = np.where(attack, 0.6, 0.4) + rng.normal(0, 0.15, (3, 300))
    labels: tuple[Label, ...] = tuple("attack" if each else "benign" for each in attack)
    votes = Votes(tuple(f"j{i}" for i in range(24)), scores, labels, np.full(300, 0.5))
    (best,) = report_on_votes(votes, size=12).best
    assert {"j20", "j21", "j22"} <= set(best.judges)
