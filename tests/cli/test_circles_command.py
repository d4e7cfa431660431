"""`firecircle circles`: found again, shown, carried elsewhere and taken out."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from firecircle.lab.datasets.reading import read_dataset
from firecircle.store.opening import open_store
from tests.cli.running import ATTACK, TRIO, Ran, assert_one_line_of_trouble, command, ran_apart
from tests.cli.telling import CLAUDE, DEEPSEEK, QUOTE, QWEN, answers, says
from tests.loopback import LoopbackServer, Script

Cli = Callable[..., Ran]
Host = Callable[[Script], LoopbackServer]

TYPED = "attack:temporal_inconsistency"
"""The label that the example of an attack brings."""


def listed(cli: Cli, *options: str) -> list[str]:
    """The labels of what a list shows."""
    ran = cli("circles", "list", "--json", *options)
    assert ran.status == 0, ran.err
    return [one["label"] for one in json.loads(ran.out)["circles"]]


def _read(terminal: int) -> str:
    """What a terminal shows next; nothing once nobody writes to it."""
    try:
        return os.read(terminal, 65536).decode()
    except OSError:
        return ""


@pytest.fixture
def three(cli: Cli) -> None:
    """Three kept judgements: an attack, a benign circle and a panel."""
    cli("evaluate", "--example", ATTACK)
    cli("evaluate", "When does the library open?", "--label", "benign", "--turn", "1")
    cli("evaluate", "hello", "--label", "panel", "--mode", "parallel")


@pytest.mark.usefixtures("three")
class TestList:
    def test_filters(self, cli: Cli) -> None:
        assert listed(cli) == ["panel", "benign", TYPED]
        assert listed(cli, "--alarm") == [TYPED]
        assert listed(cli, "--no-alarm") == ["panel", "benign"]
        assert listed(cli, "--label", "benign") == ["benign"]
        assert listed(cli, "--label", "attack") == listed(cli, "--label", TYPED) == [TYPED]
        assert listed(cli, "--label", "attack:role_confusion") == listed(cli, "--label", "att") == []
        assert listed(cli, "--mode", "parallel") == ["panel"]
        assert listed(cli, "--pattern", "temporal inconsistency") == [TYPED]
        assert listed(cli, "--voice", "embedded:rules", "--mode", "fire_circle") == ["benign", TYPED]
        assert listed(cli, "--text", '"the library open"') == ["benign"]
        assert listed(cli, "--since", "1h") == ["panel", "benign", TYPED]
        assert listed(cli, "--until", "1h") == []
        assert listed(cli, "--since", time.strftime("%Y-%m-%d"), "--status", "interrupted") == []

    @pytest.mark.parametrize("columns", [70, 80, 120])
    def test_on_a_terminal_every_column_is_there(self, columns: int) -> None:
        main, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, (24, columns))
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        environment |= {"TERM": "xterm", "NO_COLOR": "1"}
        process = subprocess.Popen(
            command("circles", "list"), stdout=terminal, stderr=terminal, env=environment
        )
        os.close(terminal)
        shown = "".join(iter(lambda: _read(main), ""))
        process.wait(60)
        os.close(main)
        head, *lines, _ = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
        assert head.split() == ["id", "begun", "verdict", "F", "label", "prompt"]
        assert all(len(line) <= columns for line in lines)
        with open_store() as store:
            names = [one.id[:8] for one in store.circles.find().circles]
        assert [line.split()[0] for line in lines] == names
        assert "ALARM" in lines[-1]
        assert " attack:temp" in lines[-1]

    def test_one_that_cannot_be_read_does_not_hold_up_the_others(self, cli: Cli, folder: Path) -> None:
        with open_store() as store, store.database.writing() as connection:
            connection.execute(sa.text("UPDATE documents SET body = x'00' WHERE circle_pk = 2"))
        ran = cli("circles", "export", "all.jsonl")
        assert ran.out == "2 circles written to all.jsonl\n"
        assert_one_line_of_trouble(Ran(ran.status, "", ran.err), "cannot be read")
        assert cli("circles", "import", "all.jsonl", "--store", "other.sqlite").out.startswith(
            "2 circles added"
        )
        (broken,) = json.loads(cli("circles", "list", "--label", "benign", "--json").out)["circles"]
        assert_one_line_of_trouble(cli("circles", "show", broken["id"]), "cannot be read")
        assert cli("circles", "delete", broken["id"], "--yes").status == 0

    def test_what_a_person_reviewed_becomes_a_dataset_of_the_lab(self, cli: Cli, folder: Path) -> None:
        with open_store() as store:
            for one in store.circles.find().circles:
                if one.label != TYPED:
                    store.circles.review(one.id, "attack", "asks for more than it says")
        assert cli("circles", "export", "mine.jsonl", "--reviewed", "--outcome", "wrong").status == 0
        records = list(read_dataset(folder / "mine.jsonl"))
        assert [(one.prompt.user, one.label) for one in records] == [
            ("When does the library open?", "attack"),
            ("hello", "attack"),
        ]
        assert json.loads((folder / "mine.jsonl").read_text().splitlines()[0])["verdict"] == "no_alarm"
        assert cli("circles", "export", "all.jsonl").status == 0
        cli("circles", "import", "all.jsonl", "--store", "other.sqlite")
        assert len(listed(cli, "--reviewed", "--store", "other.sqlite")) == 2
        assert listed(cli, "--not-reviewed") == [TYPED]

    def test_pages(self, cli: Cli) -> None:
        first = cli("circles", "list", "--limit", "2", "--json")
        document = json.loads(first.out)
        assert [one["label"] for one in document["circles"]] == ["panel", "benign"]
        assert listed(cli, "--before", str(document["next_before"])) == [TYPED]
        told = cli("circles", "list", "--limit", "2")
        assert told.err == f"there are more: add --before {document['next_before']}\n"

    def test_a_line_each_for_a_pipe(self, cli: Cli) -> None:
        lines = [line.split("\t") for line in cli("circles", "list").out.splitlines()]
        assert [(line[2], line[4], line[6]) for line in lines] == [
            ("no alarm", "parallel", "panel"),
            ("no alarm", "fire_circle", "benign"),
            ("ALARM", "fire_circle", TYPED),
        ]
        assert lines[1][8] == "When does the library open?"

    def test_mistakes(self, cli: Cli) -> None:
        assert_one_line_of_trouble(cli("circles", "list", "--since", "yesterday"), "--since", "7d")
        assert_one_line_of_trouble(cli("circles", "list", "--text", "  "), "needs a word")
        assert_one_line_of_trouble(cli("circles", "list", "--limit", "0"), "--limit")
        assert_one_line_of_trouble(cli("circles", "show", "zzzz"), "no such circle", "circles list")


class TestShow:
    def test_it_tells_what_evaluate_told(self, cli: Cli, hosted: Host) -> None:
        seen = ("temporal_inconsistency", QUOTE)
        lines = {
            CLAUDE: [says(0.3, "plausible"), says(0.85, "no such check took place", seen)],
            QWEN: [says(0.75, "odd"), says(0.4, "calm", seen)],
            DEEPSEEK: [says(0.1, "fine")],
        }
        hosted(answers(lines))
        told = cli("evaluate", "--example", ATTACK, "--models", TRIO, "--verbose").out
        name = told.rstrip().rsplit(" ", 1)[1]
        shown = cli("circles", "show", name, "--verbose")
        assert shown.status == 0
        report = told[told.index("Verdict") : told.index("Saved  ")]
        assert report in shown.out
        assert told[told.index("Round 1 ") : told.index("Verdict")] in shown.out
        assert "label attack" in shown.out
        assert "3 voices (chosen)" in shown.out.splitlines()[0]
        assert "0.85" in shown.out[: shown.out.index("Verdict")]
        assert json.loads(cli("circles", "show", name, "--json").out)["alarm"] is True

    def test_hostile_text_does_not_steer_the_terminal(self, cli: Cli, hosted: Host) -> None:
        nasty = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"
        hosted(answers({name: [says(0.2, nasty, (nasty, nasty))] for name in TRIO.split(",")}))
        cli("evaluate", f"{nasty} hello", "--models", TRIO, "--label", nasty)
        (one,) = json.loads(cli("circles", "list", "--json").out)["circles"]
        for arguments in (
            ("list",),
            ("list", "--json"),
            ("show", one["id"]),
            ("show", one["id"], "--verbose"),
            ("show", one["id"], "--json"),
            ("export",),
            ("label", one["id"], nasty),
        ):
            ran = cli("circles", *arguments)
            assert ran.status == 0
            for text in (ran.out, ran.err):
                assert not set(text) & set("\x1b\x07\x9b\u202e")


@pytest.mark.usefixtures("three")
class TestCarrying:
    def test_out_and_in_again(self, cli: Cli, folder: Path) -> None:
        ran = cli("circles", "export", "all.jsonl", "--json")
        assert json.loads(ran.out) == {"file": "all.jsonl", "circles": 3, "unreadable": []}
        other = ("--store", "other.sqlite")
        assert cli("circles", "import", "all.jsonl", *other).out == "3 circles added, 0 there already\n"
        assert cli("circles", "import", "all.jsonl", *other).out == "0 circles added, 3 there already\n"
        assert listed(cli, *other) == ["panel", "benign", TYPED]
        piped = cli("circles", "export", "--label", "attack")
        assert piped.err == "1 circle written\n"
        (folder / "one.jsonl").write_text(piped.out + "{}\n")
        ran = cli("circles", "import", "one.jsonl", "--json", *other)
        assert ran.status == 2
        assert json.loads(ran.out)["bad_lines"] == [{"number": 3, "why": "no circle in it"}]
        assert ran.err == "error: line 3: no circle in it\n"
        assert sorted(file.name for file in folder.iterdir()) == ["all.jsonl", "one.jsonl", "other.sqlite"]

    def test_a_file_is_replaced_only_when_that_is_asked_for(self, cli: Cli, folder: Path) -> None:
        for group in ("circles", "bank", "rotation"):
            (folder / "mine.jsonl").write_text("mine")
            ran = cli(group, "export", "mine.jsonl")
            assert_one_line_of_trouble(ran, "mine.jsonl is already there", "--force")
            assert (folder / "mine.jsonl").read_text() == "mine"
            assert cli(group, "export", "mine.jsonl", "--force").status == 0
            assert (folder / "mine.jsonl").read_text() != "mine"

    def test_what_evaluate_printed(self, cli: Cli, folder: Path) -> None:
        (folder / "r.json").write_text(cli("evaluate", "hello", "--no-save", "--json=full").out)
        assert cli("circles", "import", "r.json").out == "1 circle added, 0 there already\n"
        assert cli("circles", "import", "r.json").out == "0 circles added, 1 there already\n"

    def test_from_a_pipe(self, cli: Cli) -> None:
        lines = cli("circles", "export").out
        ran = ran_apart("circles", "import", "-", text=lines)
        assert (ran.status, ran.out) == (0, "0 circles added, 3 there already\n")

    def test_places_that_cannot_be(self, cli: Cli, folder: Path) -> None:
        assert_one_line_of_trouble(cli("circles", "export", "none/x.jsonl"), "cannot write")
        assert_one_line_of_trouble(cli("circles", "import", "none.jsonl"), "cannot read")
        assert_one_line_of_trouble(cli("circles", "import", str(folder)), "cannot read")
        assert_one_line_of_trouble(cli("circles", "export", "--json"), "--json")


@pytest.mark.usefixtures("three")
class TestTakingOut:
    def test_it_is_told_where_nobody_can_be_asked(self, cli: Cli) -> None:
        assert_one_line_of_trouble(cli("circles", "prune", "--label", "benign"), "--yes")
        assert_one_line_of_trouble(cli("circles", "prune", "--yes"), "--all")
        assert cli("circles", "prune", "--label", "benign", "--yes").out == "1 circle deleted\n"
        assert listed(cli) == ["panel", TYPED]
        assert cli("circles", "prune", "--before", "1d", "--yes").out == "no saved circle matches\n"
        assert json.loads(cli("circles", "prune", "--all", "--yes", "--json").out) == {"deleted": 2}

    def test_by_id(self, cli: Cli) -> None:
        names = [one["id"] for one in json.loads(cli("circles", "list", "--json").out)["circles"]]
        assert_one_line_of_trouble(cli("circles", "delete", names[0], "zzzz", "--yes"), "no such circle")
        assert len(listed(cli)) == 3
        ran = cli("circles", "delete", names[0], names[1][:8], names[1], "--yes", "--json")
        assert json.loads(ran.out) == {"deleted": names[:2]}
        assert listed(cli) == [TYPED]

    @pytest.mark.parametrize(("answer", "left"), [("y", 2), ("n", 3), ("", 3)])
    def test_at_a_terminal(self, answer: str, left: int) -> None:
        main, terminal = pty.openpty()
        process = subprocess.Popen(
            command("circles", "prune", "--label", "benign"),
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(terminal)
        os.write(main, f"{answer}\n".encode())
        out, err = process.communicate(timeout=60)
        os.close(main)
        assert b"Delete 1 circle from " in err
        assert out in (b"1 circle deleted\n", b"nothing was deleted\n")
        with open_store() as store:
            assert store.circles.count() == left


def test_labels(cli: Cli) -> None:
    cli("evaluate", "hello")
    name = json.loads(cli("circles", "list", "--json").out)["circles"][0]["id"]
    assert cli("circles", "label", name[:8], "benign").out == f"{name} has the label benign\n"
    assert listed(cli) == ["benign"]
    assert_one_line_of_trouble(cli("circles", "label", name), "LABEL")
    assert cli("circles", "label", name, "--none").status == 0
    assert listed(cli) == [None]
    assert_one_line_of_trouble(cli("circles", "cancel", name), "over already")


def test_an_export_goes_into_a_pipe_without_taking_its_place(cli: Cli, folder: Path) -> None:
    cli("evaluate", "hello", "--turn", "1")
    cli("bank", "learn")
    for number, group in enumerate(("circles", "bank", "rotation")):
        pipe = folder / f"pipe{number}"
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        assert cli(group, "export", str(pipe)).status == 0
        assert reader.communicate(timeout=60)[0].startswith(b"{")
        assert pipe.is_fifo()


@pytest.mark.parametrize("group", ["circles", "bank", "rotation"])
def test_a_reader_who_leaves_hears_nothing_of_it(cli: Cli, group: str) -> None:
    cli("evaluate", "--example", ATTACK)
    cli("bank", "learn")
    process = subprocess.Popen(
        command(group, "export", "-"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() in (b"", b"1 circle written\n")
    process.wait(60)
    process.stderr.close()
