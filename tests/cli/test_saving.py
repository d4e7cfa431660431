"""`evaluate` keeps what it judged, unless told not to, and says how to find it again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from firecircle.store.opening import open_store
from firecircle.store.place import STORE_VARIABLE, place_of
from tests.cli.running import ATTACK, TRIO, Ran, assert_one_line_of_trouble
from tests.cli.telling import answers, says
from tests.loopback import LoopbackServer, Script, failure

Cli = Callable[..., Ran]
Host = Callable[[Script], LoopbackServer]
Write = Callable[[str], Path]
KEPT = re.compile(r"(?:Saved +|saved )as (\w+): firecircle circles show")


def kept_labels(where: str | None = None) -> list[tuple[str, str | None]]:
    with open_store(where) as store:
        return [(one.mode, one.label) for one in store.circles.find().circles]


def nothing_is_kept() -> bool:
    place = place_of()
    return isinstance(place, Path) and not place.exists()


@pytest.mark.parametrize("mode", ["fire_circle", "parallel", "single"])
def test_the_report_ends_with_how_to_find_it_again(cli: Cli, mode: str) -> None:
    ran = cli("evaluate", "hello", "--turn", "1", "--mode", mode)
    found = KEPT.search(ran.out)
    assert found
    shown = cli("circles", "show", found[1])
    assert shown.status == 0
    assert "no alarm" in shown.out
    assert kept_labels() == [(mode, None)]


def test_nothing_is_kept_when_told_so(cli: Cli, settings_file: Write) -> None:
    assert "circles show" not in cli("evaluate", "hello", "--no-save").out
    assert cli("evaluate", "hello", "--dry-run").status == 0
    assert nothing_is_kept()
    settings_file("[store]\nsave = false\n")
    assert "circles show" not in cli("evaluate", "hello").out
    assert nothing_is_kept()
    assert "circles show" in cli("evaluate", "hello", "--save").out
    assert_one_line_of_trouble(cli("evaluate", "hello", "--no-save", "--label", "x"), "--label", "--no-save")


def test_an_example_keeps_its_own_label_unless_it_was_changed(cli: Cli) -> None:
    cli("evaluate", "--example", ATTACK)
    cli("evaluate", "--example", ATTACK, "--system", "Mine.")
    cli("evaluate", "--example", ATTACK, "--label", "mine")
    cli("evaluate", "--example", ATTACK.replace("attack", "benign"))
    labels = ("benign", "mine", None, "attack:temporal_inconsistency")
    assert kept_labels() == [("fire_circle", label) for label in labels]


def test_the_store_can_be_named(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("evaluate", "hello", "--store", "one.sqlite", "--label", "one")
    monkeypatch.setenv(STORE_VARIABLE, str(folder / "two.sqlite"))
    cli("evaluate", "hello", "--label", "two")
    assert kept_labels("one.sqlite") == [("fire_circle", "one")]
    assert kept_labels("two.sqlite") == [("fire_circle", "two")]


def test_a_store_that_fails_never_costs_the_verdict(cli: Cli, folder: Path) -> None:
    (folder / "notes.txt").write_text("no database, but the notes of somebody\n" * 40)
    for extra in ((), ("--json",), ("--mode", "single")):
        ran = cli("evaluate", "--example", ATTACK, "--store", "notes.txt", *extra)
        assert ran.status in (1, 2)  # an alarm stays one; else the status says that something went wrong
        assert ran.err.startswith("warning: not saved: store: ")
        assert ran.err.count("\n") == 1
        assert "Saved" not in ran.out
    assert cli("evaluate", "--example", ATTACK, "--store", "notes.txt", "--json").status == 1
    assert cli("evaluate", "hello", "--store", "notes.txt").status == 2
    (folder / "few.txt").write_text("hello\n" * 3)
    few = cli("evaluate", "--batch", "few.txt", "--store", "notes.txt", "--quiet")
    assert few.status == 2
    assert "3 prompts: " in few.out
    assert "Saved" not in few.out
    (warning,) = few.err.splitlines()
    assert warning.startswith("warning: not saved (3 times): store: ")


def test_only_what_is_not_kept_is_said_not_to_be(cli: Cli, folder: Path) -> None:
    cli("evaluate", "hello", "--store", "torn.sqlite")
    with open_store("torn.sqlite") as store, store.database.writing() as connection:
        connection.execute(sa.text("DROP TABLE participations"))
    ran = cli("evaluate", "hello", "--store", "torn.sqlite")
    assert KEPT.search(ran.out)
    assert ran.err.startswith("warning: not saved: who took part, which rotation needs (the circle itself is")
    assert ran.err.count("\n") == 1
    assert len(kept_labels("torn.sqlite")) == 2


def test_a_store_may_be_read_though_nothing_is_kept(cli: Cli, folder: Path) -> None:
    at = ("--no-save", "--store", "history.sqlite")
    cli("evaluate", "hello", "--rotate", "2", "--store", "history.sqlite")
    ran = cli("evaluate", "hello", "--rotate", "2", *at)
    assert (ran.status, "; not recorded\n" in ran.err) == (0, True)
    assert len(kept_labels("history.sqlite")) == 1
    assert_one_line_of_trouble(
        cli("evaluate", "hello", "--mode", "single", "--bank", "2", *at), "bank is empty"
    )
    assert_one_line_of_trouble(cli("evaluate", "hello", *at), "--store", "--no-save")


def test_a_name_that_can_be_no_store_is_refused_before_anybody_is_asked(cli: Cli) -> None:
    assert_one_line_of_trouble(cli("evaluate", "hello", "--store", "mysql://h/d"), "store:", "postgresql://")


def test_a_circle_that_breaks_is_kept_too(cli: Cli, hosted: Host) -> None:
    hosted(answers({name: [failure(404, "gone")] for name in TRIO.split(",")}))
    ran = cli("evaluate", "hello", "--models", TRIO)
    assert ran.status == 2
    assert KEPT.search(ran.out)
    shown = cli("circles", "show", KEPT.findall(ran.out)[0])
    assert "no verdict" in shown.out
    assert "gone" in shown.out
    single = cli("evaluate", "hello", "--mode", "single", "--models", TRIO.split(",")[0])
    assert single.status == 2
    listed = json.loads(cli("circles", "list", "--json").out)["circles"]
    assert [one["status"] for one in listed] == ["aborted", "aborted"]
    assert "gone" in cli("circles", "show", listed[0]["id"]).out


def test_the_json_of_a_panel_says_where_it_is_kept_and_that_of_a_circle_is_as_it_was(cli: Cli) -> None:
    panel = json.loads(cli("evaluate", "hello", "--mode", "single", "--json=full").out)
    assert cli("circles", "show", panel["kept_as"]).status == 0
    circle = json.loads(cli("evaluate", "hello", "--json=full").out)
    assert "kept_as" not in circle
    again = json.loads(cli("circles", "show", circle["circle_id"], "--json").out)
    assert again == circle


def test_no_key_reaches_the_store(cli: Cli, hosted: Host) -> None:
    hosted(answers({name: [says(0.2, "fine")] for name in TRIO.split(",")}))
    assert cli("evaluate", "hello", "--models", TRIO).status == 0
    place = place_of()
    assert isinstance(place, Path)
    for file in place.parent.iterdir():
        assert b"sk-test-key" not in file.read_bytes()
    assert "sk-test-key" not in cli("circles", "export").out


def test_a_draw_is_told_and_can_be_verified(cli: Cli) -> None:
    ran = cli("evaluate", "hello", "--rotate", "2", "--shadow")
    told = re.search(
        r"would be drawn \(shadow\) from 3 voices: .*; `firecircle (rotation show \w+)`", ran.err
    )
    assert told is not None, ran.err
    assert cli(*told[1].split()).status == 0
    unkept = cli("evaluate", "hello", "--rotate", "2", "--no-save")
    assert "; not recorded\n" in unkept.err
    assert len(json.loads(cli("rotation", "show", "--json").out)["draws"]) == 1
