"""`firecircle replay`: a recorded circle is held again, told as it was, and asks nobody."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firecircle.circle.result import SCHEMA_VERSION
from tests.cli.running import ATTACK, TRIO, Ran, assert_one_line_of_trouble, steady
from tests.cli.telling import CLAUDE, DEEPSEEK, QUOTE, QWEN, answers, in_order, says
from tests.loopback import LoopbackServer, Script, failure

Cli = Callable[..., Ran]
Host = Callable[[Script], LoopbackServer]

LEFT_EARLY = """
import io, sys
from firecircle.cli.main import run

class LeftAtTheFirstAnswer(io.StringIO):
    def fileno(self):
        return 1

    def write(self, text):
        if left or text.startswith("round 1: "):
            left.append(text)
            raise BrokenPipeError
        return len(text)

left = []
sys.stdout = LeftAtTheFirstAnswer()
status = run(["replay", "circle.json"])
assert left
sys.exit(status)
"""
SEEN = ("temporal_inconsistency", QUOTE)
TALK = {
    CLAUDE: [says(0.4, "odd"), says(0.8, "agreed", SEEN)],
    QWEN: [says(0.2, "fine"), says(0.3, "still fine")],
    DEEPSEEK: [says(0.1, "fine"), says(0.6, "hm", SEEN)],
}


@pytest.fixture
def recorded(cli: Cli, hosted: Host, folder: Path) -> Callable[..., Ran]:
    """Record a circle of three hosted voices in circle.json; afterwards nobody answers any more."""

    def record(script: Script | None = None, *options: str) -> Ran:
        server = hosted(script or answers(TALK))
        ran = cli("evaluate", "--example", ATTACK, "--models", TRIO, "--rounds", "2", "--json=full", *options)
        (folder / "circle.json").write_text(ran.out)
        server.requests.clear()
        return ran

    return record


def changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> str:
    document = json.loads((folder / "circle.json").read_text())
    change(document)
    (folder / "changed.json").write_text(json.dumps(document))
    return "changed.json"


def test_a_recording_comes_back_byte_for_byte_and_nobody_is_asked(
    cli: Cli, hosted: Host, folder: Path
) -> None:
    server = hosted(answers(TALK))
    first = cli("evaluate", "--example", ATTACK, "--models", TRIO, "--rounds", "2", "--json=full")
    (folder / "circle.json").write_text(first.out)
    asked = len(server.requests)
    again = cli("replay", "circle.json", "--json=full")
    assert (again.status, again.out, again.err) == (first.status, first.out, first.err)
    assert len(server.requests) == asked == 6


def test_it_is_told_in_the_words_of_evaluate(cli: Cli, hosted: Host, folder: Path) -> None:
    hosted(answers(TALK))
    arguments = ("evaluate", "--example", ATTACK, "--models", TRIO, "--rounds", "2", "--seed", "1")
    (folder / "circle.json").write_text(cli(*arguments, "--json=full").out)
    hosted(answers(TALK))
    told = cli(*arguments, "--verbose")
    again = cli("replay", "circle.json", "--verbose")
    assert again.status == told.status == 1
    assert "replay of circle.json" in again.out.splitlines()[0]
    assert "no voice is asked" in again.out.splitlines()[0]
    assert _told(again.out) == _told(told.out)


def _told(output: str) -> list[str]:
    """The dialogue and the report on it, up to where a circle that ran now says that it is saved."""
    told = steady(output[output.index("circle: ") :]).partition("\nSaved ")[0]
    return in_order(told).splitlines()


def test_the_verdict_is_drawn_anew_under_other_settings(cli: Cli, recorded: Callable[..., Ran]) -> None:
    assert recorded().status == 1
    calm = cli("replay", "circle.json", "--threshold", "0.9", "--pattern-threshold", "0.9", "--json=full")
    result = json.loads(calm.out)
    assert calm.status == 0
    assert not result["alarm"]
    assert result["config"]["alarm_threshold"] == 0.9
    assert result["patterns"] == []
    assert [seen["left_out"] for seen in result["observations"]] == ["below_threshold"] * 2
    assert json.loads(cli("replay", "circle.json", "--json=full").out)["patterns"]


def test_the_rules_of_the_quorum_can_change_too(cli: Cli, recorded: Callable[..., Ran]) -> None:
    recorded()
    strict = cli("replay", "circle.json", "--min-coverage", "99")
    assert_one_line_of_trouble(strict, "Insufficient cognitive coverage", "--no-quorum")
    loose = json.loads(cli("replay", "circle.json", "--no-quorum", "--min-coverage", "99", "--json=full").out)
    assert not loose["quorum"]["valid"]
    assert not loose["quorum"]["enforced"]
    assert_one_line_of_trouble(cli("replay", "circle.json", "--min-groups", "9"), "9", "--no-quorum")


@pytest.mark.parametrize("latency", [0.0, 5.0], ids=["others-answered", "others-were-called-off"])
def test_a_circle_that_broke_off_breaks_off_again(
    latency: float, cli: Cli, recorded: Callable[..., Ran]
) -> None:
    others = {model: [replace(words[0], latency=latency)] for model, words in TALK.items()}
    script = answers({**others, QWEN: [failure(404, "no such model")]})
    broken = recorded(script, "--strict")
    assert broken.status == 2
    again = cli("replay", "circle.json")
    assert again.status == 2
    assert again.err.count("\n") == 1
    assert "no such model" in again.out
    assert "no verdict" in again.out
    as_json = cli("replay", "circle.json", "--json=full")
    assert as_json.status == 2
    assert json.loads(as_json.out)["partial_result"] == json.loads(broken.out)["partial_result"]


def test_a_circle_that_was_called_off_shows_what_was_heard(
    cli: Cli, recorded: Callable[..., Ran], folder: Path
) -> None:
    recorded()
    ran = cli("replay", changed(folder, lambda circle: circle.update(stopped="cancelled")), "--verbose")
    assert ran.status == 2
    assert "called off" in ran.err
    assert "still fine" in ran.out


def test_replies_that_are_read_otherwise_today_are_told(
    cli: Cli, recorded: Callable[..., Ran], folder: Path
) -> None:
    recorded()

    def misread(circle: dict[str, Any]) -> None:
        circle["dialogue_history"][1]["evaluations"][0]["falsehood"] = 0.95

    ran = cli("replay", changed(folder, misread), "--json=full")
    assert "read otherwise today; F 0.95 then, F 0.80 now" in ran.err
    assert json.loads(ran.out)["consensus"]["falsehood"] == 0.8


def test_the_embedded_circle_is_replayed_from_a_pipe(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cli("evaluate", "--example", ATTACK, "--json=full")
    (folder / "circle.json").write_text(first.out)
    with (folder / "circle.json").open() as piped:
        monkeypatch.setattr("sys.stdin", piped)
        assert cli("replay", "-", "--json=full").out == first.out


def test_a_reader_who_leaves_early_is_no_trouble(cli: Cli, folder: Path) -> None:
    (folder / "circle.json").write_text(cli("evaluate", "--example", ATTACK, "--json=full").out)
    done = subprocess.run([sys.executable, "-c", LEFT_EARLY], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.decode()) == (2, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no recorded circle; give a file"),
        ("{}", "no recorded circle; give a file"),
        ('{"dialogue_history": []}', "circle.circle_id: Field required"),
        ('{"error": "no key", "partial_result": null}', "nothing to replay"),
    ],
)
def test_a_file_that_is_no_recording_is_one_line(text: str, words: str, cli: Cli, folder: Path) -> None:
    (folder / "odd.json").write_text(text)
    assert_one_line_of_trouble(cli("replay", "odd.json"), "odd.json: ", words)


def test_other_things_that_cannot_be_replayed(cli: Cli, recorded: Callable[..., Ran], folder: Path) -> None:
    assert_one_line_of_trouble(cli("replay", "none.json"), "none.json: cannot be read: No such file")
    assert_one_line_of_trouble(cli("replay", "."), "cannot be read")
    (folder / "latin.json").write_bytes(b'{"a": "\xe9"}')
    assert_one_line_of_trouble(cli("replay", "latin.json"), "not JSON")
    recorded()
    newer = changed(folder, lambda circle: circle.update(schema_version=SCHEMA_VERSION + 1, news=1))
    assert_one_line_of_trouble(cli("replay", newer), "recorded by a newer firecircle", "upgrade")
    single = cli(
        "evaluate", "--example", ATTACK, "--models", "embedded:time", "--mode", "single", "--json=full"
    )
    (folder / "single.json").write_text(single.out)
    assert_one_line_of_trouble(cli("replay", "single.json"), "has no dialogue")
    assert_one_line_of_trouble(cli("replay", "circle.json", "--threshold", "2"), "--threshold")


def test_an_export_is_told_as_what_it_is(cli: Cli, folder: Path) -> None:
    cli("evaluate", "--example", ATTACK)
    cli("circles", "export", "all.jsonl")
    assert_one_line_of_trouble(cli("replay", "all.jsonl"), "all.jsonl: an export", "circles import")
