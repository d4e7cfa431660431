"""Bad input: one line that names the field and the way out, status 2, nothing half-written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import ATTACK, Ran, assert_one_line_of_trouble, ran_apart

Cli = Callable[..., Ran]
ELEVEN = ",".join(f"embedded:time#{number}" for number in range(2, 13))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["hi", "--models", "nobody/knows-it,embedded:time"], ["set OPENROUTER_API_KEY"]),
        (["hi", "--models", "embedded:time"], ["models: ", "2 to 10", "got 1"]),
        (["hi", "--models", ELEVEN], ["models: ", "2 to 10", "got 11"]),
        (["hi", "--models", "embedded:time,embedded:time"], ["listed twice", "embedded:time#2"]),
        (
            ["hi", "--models", "embedded:time,embedded:layers"],
            ["provider diversity", "pass --set enforce_quorum=false"],
        ),
        (["hi", "--models", ","], ["--models: no name"]),
        (["hi", "--models", "embedded:nobody,embedded:time", "--no-quorum"], ["embedded:nobody"]),
        (["hi", "--threshold", "1.5"], ["error: --threshold: ", "equal to 1", "evaluate --help"]),
        (["hi", "--threshold", "-0.1"], ["--threshold"]),
        (["hi", "--threshold", "nan"], ["error: --threshold: ", "equal to"]),
        (["hi", "--threshold", "high"], ["--threshold"]),
        (["hi", "--rounds", "0"], ["--rounds"]),
        (["hi", "--rounds", "5"], ["--rounds"]),
        (["hi", "--turn", "0"], ["--turn"]),
        (["hi", "--mode", "trial"], ["--mode", "fire_circle"]),
        (["hi", "--focus", "tools"], ["--focus"]),
        (["hi", "--focus", "system"], ["focus: the system layer is empty"]),
        (["hi", "--seed", "soon"], ["--seed"]),
        (["hi", "--no-such-option"], ["--no-such-option"]),
        (["hi", "there"], ["there"]),
        (["hi", "--user", "hi"], ["--user: given twice"]),
        ([""], ["every layer is empty", "give system, application or user text"]),
        (["   ", "--system", "\n"], ["every layer is empty"]),
        (["--system", "-", "--user", "-"], ["user: standard input", "@file"]),
        (["@nowhere.txt"], ["user: cannot read nowhere.txt", "@@"]),
        (["@"], ["user: cannot read", "@@"]),
        (["@."], ["user: cannot read .", "directory"]),
        (["hi", "--application", "@latin1.txt"], ["application: latin1.txt is not UTF-8", "byte 3"]),
        (["@huge.txt"], ["user: 2,000,000 characters", "limit is 1,000,000", "in parts"]),
        (["@enormous.txt"], ["user: more than 4,000,000 bytes", "limit is 1,000,000", "in parts"]),
        (["@/dev/zero"], ["user: more than 4,000,000 bytes"]),
        (["hi", "--turns", "yesterday"], ["turns: not JSON", "JSON list"]),
        (["hi", "--turns", "{}"], ["turns: not a list", "JSON list"]),
        (["hi", "--turns", '[{"role": "user"}]'], ["turns.content", "JSON list"]),
        (["hi", "--turns", '[{"role": "user", "content": 1}]'], ["turns.content"]),
        (["hi", "--turns", "[" * 100_000], ["turns: not JSON"]),
        (["hi", "--turns", "@nowhere.json"], ["turns: cannot read nowhere.json"]),
        (["hi", "--turns", "[]", "--turn", "4"], ["--turn: ", "turn 1, not 4"]),
        (["--example", "temporal_inconsistency-1-attack"], ["did you mean", ATTACK]),
        (["--example", "€€€"], ["example: there is no", "firecircle examples"]),
        (
            ["hi", "--chair-prompt", "nowhere.txt"],
            ["--set empty_chair_prompt_path: cannot read nowhere.txt"],
        ),
        (["hi", "--chair-prompt", "latin1.txt"], ["--set empty_chair_prompt_path: latin1.txt is not UTF-8"]),
        (["hi", "--chair-prompt", "blank.txt"], ["--set empty_chair_prompt_path: blank.txt is empty"]),
        (["hi", "--session", "nowhere/s.json"], ["session: nowhere/s.json", "create the folder"]),
        (["hi", "--session", "."], ["session: "]),
        (["hi", "--session", "blank.txt"], ["session: blank.txt is not a session file"]),
        (["hi", "--session", "latin1.txt"], ["session: latin1.txt is not UTF-8"]),
        (["hi", "--mode", "parallel", "--rounds", "2"], ["--rounds: only a circle"]),
        (["hi", "--mode", "single", "--strict"], ["--set failure_mode: only a circle"]),
        (["hi", "--mode", "single", "--models", "a/b,c/d"], ["--models: ", "--mode parallel"]),
        (["hi", "--models", "anthropic/claude-sonnet-4,qwen/qwen-2.5-72b"], ["OPENROUTER_API_KEY"]),
    ],
)
def test_one_line_names_the_field_and_the_way_out(
    cli: Cli, folder: Path, arguments: list[str], words: list[str]
) -> None:
    (folder / "latin1.txt").write_bytes(b"caf\xe9!")
    (folder / "blank.txt").write_text(" \n")
    (folder / "huge.txt").write_text("a" * 2_000_000)
    (folder / "enormous.txt").write_text("a" * 5_000_000)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}

    assert_one_line_of_trouble(cli("evaluate", *arguments), *words)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_undecodable_standard_input() -> None:
    assert_one_line_of_trouble(ran_apart("evaluate", text=b"\xff\xfe"), "user: standard input is not UTF-8")


def test_undecodable_argument() -> None:
    assert_one_line_of_trouble(ran_apart("evaluate", "--system", b"caf\xe9"), "system: the text is not UTF-8")


def test_nothing_given_and_nothing_piped() -> None:
    assert_one_line_of_trouble(ran_apart("evaluate"), "every layer is empty")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(cli: Cli, folder: Path) -> None:
    (folder / "secret.txt").touch(mode=0o000)
    assert_one_line_of_trouble(
        cli("evaluate", "@secret.txt"), "user: cannot read secret.txt: Permission denied"
    )


def test_an_existing_session_stays_as_it_was(cli: Cli, folder: Path) -> None:
    assert cli("evaluate", "hello", "--session", "s.json").status == 0
    before = (folder / "s.json").read_bytes()
    assert_one_line_of_trouble(
        cli("evaluate", "hello", "--session", "s.json", "--turn", "7"), "--turn: the session is at turn 2"
    )
    assert_one_line_of_trouble(
        cli("evaluate", "hello", "--session", "s.json", "--turns", "[]"), "turns: ", "session is at turn 2"
    )
    assert (folder / "s.json").read_bytes() == before
    assert [file.name for file in folder.iterdir()] == ["s.json"]


def test_no_command_shows_what_there_is(cli: Cli) -> None:
    ran = cli()
    assert ran.status == 0
    assert "evaluate" in ran.out
    assert_one_line_of_trouble(cli("evalate"), "evalate")


def test_a_mistake_of_ours_is_no_alarm(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> int:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("firecircle.cli.evaluate.judging.judge", broken)
    ran = cli("evaluate", "hello")
    assert ran.status == 2
    assert "ZeroDivisionError" in ran.err
    assert ran.err.splitlines()[-1].startswith("error: this is a bug")
