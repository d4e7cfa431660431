"""`firecircle quorum` explains coverage, lineages and every shortfall."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from firecircle.examples import load_examples
from tests.cli.running import TRIO, Ran, assert_one_line_of_trouble, steady

Cli = Callable[..., Ran]


def test_a_quorum(cli: Cli) -> None:
    ran = cli("quorum", *TRIO.split(","))
    assert ran.status == 0
    assert steady(ran.out) == snapshot("""\
 QUORUM   3 voices

role                       share     covers            covered best by
temporal reasoning *       0.90 × 3    2.70  ███████░  anthropic/clau…nnet-4
cross layer analysis *     0.90 × 3    2.70  ███████░  anthropic/clau…nnet-4
pattern recognition        0.80 × 2    1.60  ██████░░  qwen/qwen-2.5-…struct
polite extraction masking  0.80 × 2    1.60  ██████░░  anthropic/clau…nnet-4
educational escalation     0.60 × 1    0.60  ████░░░░  anthropic/clau…nnet-4
future impact              0.60 × 2    1.20  ████░░░░  anthropic/clau…nnet-4
system maintenance         0.00 × 1    0.00  ░░░░░░░░  no voice
* critical: some voice must have a share above 0.5

Coverage  10.40 (needs 5.00)
Lineages  3 (needs 2)
          anthropic: anthropic/claude-sonnet-4
          alibaba: qwen/qwen-2.5-72b-instruct
          deepseek: deepseek/deepseek-r1
Groups    us_aligned: anthropic/claude-sonnet-4
          cn_aligned: qwen/qwen-2.5-72b-instruct, deepseek/deepseek-r1
Measured  not yet: it takes 30 labelled prompts in the store that they judged
""")


def test_one_voice_is_none_and_every_shortfall_is_told(cli: Cli) -> None:
    ran = cli("quorum", "embedded:ngrams")
    assert ran.status == 1
    assert steady(ran.out) == snapshot("""\
 NO QUORUM   1 voice

role                       share     covers            covered best by
temporal reasoning *       0.62 × 3    1.86  ████░░░░  embedded:ngrams
cross layer analysis *     0.54 × 3    1.62  ████░░░░  embedded:ngrams
pattern recognition        0.47 × 2    0.94  ███░░░░░  embedded:ngrams
polite extraction masking  0.42 × 2    0.84  ███░░░░░  embedded:ngrams
educational escalation     0.18 × 1    0.18  █░░░░░░░  embedded:ngrams
future impact              0.00 × 2    0.00  ░░░░░░░░  no voice
system maintenance         0.00 × 1    0.00  ░░░░░░░░  no voice
* critical: some voice must have a share above 0.5
From round 2 the voice in the empty chair covers future impact.

Coverage  5.44 (needs 5.00)
Lineages  1 (needs 2)
          embedded_statistical: embedded:ngrams
Groups    embedded: embedded:ngrams
Short     Minimum 2 active models required
          Insufficient provider diversity: 1 < 2
""")


def test_json(cli: Cli) -> None:
    ran = cli("quorum", "embedded:time,embedded:time#2", "--json")
    assert ran.status == 1
    told = json.loads(ran.out)
    assert told["models"] == ["embedded:time", "embedded:time#2"]
    assert told["valid"] is False
    assert told["coverage"] == pytest.approx(7.3)
    assert told["lineages"] == {"embedded_rules": ["embedded:time", "embedded:time#2"]}
    best = {role["role"]: (role["best_voice"], role["weighted"]) for role in told["roles"]}
    assert best["temporal_reasoning"] == ("embedded:time", pytest.approx(2.28))
    assert best["future_impact"] == (None, 0)
    assert len(told["shortfalls"]) == 1


def test_the_rules_can_be_changed(cli: Cli) -> None:
    pair = ("embedded:time", "embedded:layers")
    assert cli("quorum", *pair).status == 1
    assert cli("quorum", *pair, "--min-lineages", "1").status == 0
    assert cli("quorum", *pair, "--min-lineages", "1", "--min-coverage", "9").status == 1


def test_what_is_known(cli: Cli) -> None:
    ran = cli("quorum", "--list")
    assert ran.status == 0
    assert any(line.startswith("embedded:rules\t") for line in ran.out.splitlines())
    families = json.loads(cli("quorum", "--list", "--json").out)
    assert len(families) == len(ran.out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["MODEL: no voice to weigh", "--list"]),
        (
            ["nobody/knows-it"],
            [
                "models: 'nobody/knows-it' is not in the catalog; declare it in firecircle.toml under",
                'provider_lineage = "who trained it"',
                "quorum --list",
            ],
        ),
        (["embedded:time", "embedded:time"], ["listed twice", "embedded:time#2"]),
        (["embedded:time", "--list"], ["--list: "]),
        (["embedded:time", "--min-coverage", "-1"], ["--min-coverage"]),
        (["embedded:time", "--min-coverage", "nan"], ["--min-coverage"]),
        (["embedded:time", "--min-lineages", "0"], ["--min-lineages"]),
    ],
)
def test_bad_input(cli: Cli, arguments: list[str], words: list[str]) -> None:
    assert_one_line_of_trouble(cli("quorum", *arguments), *words)


def test_a_labelled_batch_shows_how_independent_readers_are(cli: Cli, folder: Path) -> None:
    assert "not yet: it takes 30 labelled prompts" in cli("quorum", "embedded:rules", "embedded:ngrams").out
    rows = ({**example.prompt.model_dump(mode="json"), "label": example.label} for example in load_examples())
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = cli("evaluate", "--batch", "rows.jsonl", "--models", "embedded:rules,embedded:ngrams", "--quiet")
    assert judged.status in (0, 1)
    ran = cli("quorum", "embedded:rules", "embedded:ngrams", "--json")
    told = json.loads(ran.out)
    assert told["independence"]["n"] > 100
    assert 1 <= told["independence"]["effective"] <= 2
    assert told["replacement"] is None
