"""The effective number of voices, checked on simulated judges, and read from files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from firecircle.cli.main import run
from firecircle.lab.statistics import effective_voices
from firecircle.lab.votes import Votes, independence, read_votes


def simulated(judges: int, phi: float, n: int, seed: int) -> Votes:
    """Each item: with probability phi all judges share one error, else each errs for itself."""
    rng = np.random.default_rng(seed)
    attack = rng.random(n) < 0.5
    shared = rng.random(n) < phi
    wrong = np.where(shared, rng.random(n) < 0.3, rng.random((judges, n)) < 0.3)
    labels = tuple("attack" if each else "benign" for each in attack)
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
