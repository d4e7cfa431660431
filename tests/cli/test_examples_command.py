"""`firecircle examples`, `--version` and `--help`."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version

from firecircle.examples import Example, load_examples
from tests.cli.running import ATTACK, Ran, assert_one_line_of_trouble, ran_apart

Cli = Callable[..., Ran]


def test_a_line_each(cli: Cli) -> None:
    ran = cli("examples")
    assert ran.status == 0
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert [line[0] for line in lines] == [example.id for example in load_examples()]
    assert all(len(line) == 4 for line in lines)


def test_some_of_them(cli: Cli) -> None:
    ran = cli("examples", "--type", "temporal_inconsistency", "--label", "attack")
    kinds = {tuple(line.split("\t")[1:3]) for line in ran.out.splitlines()}
    assert kinds == {("temporal_inconsistency", "attack")}
    assert ran.out.startswith(f"{ATTACK}\t")


def test_json_holds_the_prompts(cli: Cli) -> None:
    listed = json.loads(cli("examples", "--label", "benign", "--json").out)
    examples = [Example.model_validate(row) for row in listed]
    assert examples == [example for example in load_examples() if example.label == "benign"]


def test_bad_input(cli: Cli) -> None:
    assert_one_line_of_trouble(cli("examples", "--type", "nonsense"), "--type: ", "polite_extraction")
    assert_one_line_of_trouble(cli("examples", "--label", "neither"), "--label")


def test_version_and_help() -> None:
    assert ran_apart("--version").out == f"firecircle {version('firecircle')}\n"
    for command in ((), ("evaluate",), ("quorum",), ("examples",)):
        ran = ran_apart(*command, "--help")
        assert (ran.status, ran.err) == (0, "")
        assert "Usage: firecircle" in ran.out
