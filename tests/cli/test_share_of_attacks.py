"""The share of attacks among the prompts of a batch that have no label, with the judge's own error."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from firecircle.examples import load_examples
from tests.cli.running import Ran


def test_the_unlabelled_part_of_a_batch_gets_a_share_with_an_interval(
    cli: Callable[..., Ran], tmp_path: Path
) -> None:
    examples = list(load_examples())
    attacks = [each for each in examples if each.label == "attack"][:40]
    benign = [each for each in examples if each.label == "benign"][:40]
    rows = [(each, str(each.label)) for each in (*attacks[:25], *benign[:25])]
    rows += [(each, "") for each in (*attacks[25:30], *benign[25:40])]
    with (tmp_path / "batch.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["system", "application", "user", "label"])
        for each, label in rows:
            table.writerow([each.prompt.system, each.prompt.application, each.prompt.user, label])
    command = ("batch", str(tmp_path / "batch.csv"), "--models", "embedded:rules,embedded:ngrams")
    whole = cli(*command, "--no-save", "--turn", "1")
    said = [line for line in (whole.out + whole.err).splitlines() if "without a label about" in line]
    assert len(said) == 1
    assert "by the errors on those with one" in said[0]
    parts = cli(*command, "--turn", "1", "--out", str(tmp_path / "parts"), "--workers", "1")
    assert said[0] in parts.out.splitlines()
