"""A broken history at the command line: refused in one line with a copy aside, until `rotation mend`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from firecircle.store.address import place_of
from firecircle.store.opening import open_store
from tests.cli.running import TRIO, Ran, assert_one_line_of_trouble
from tests.cli.telling import answers
from tests.loopback import LoopbackServer, Script

Cli = Callable[..., Ran]
Host = Callable[[Script], LoopbackServer]


def copies() -> list[Path]:
    place = place_of()
    assert isinstance(place, Path)
    return sorted(place.parent.glob("participation-broken-*"))


@pytest.fixture
def broken(cli: Cli) -> None:
    """A store with a sitting of four and a draw, of both of which something was garbled."""
    assert cli("evaluate", "hello", "--rotate", "4").status == 0
    assert cli("evaluate", "hello", "--rotate", "4").status == 0
    with open_store() as store, store.database.writing() as connection:
        connection.execute(sa.text("UPDATE participations SET at = 'long ago' WHERE pk IN (1, 3)"))
        connection.execute(sa.text("UPDATE draws SET body = 'no \x1b[31mjson' WHERE pk = 1"))


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("command", [("show",), ("simulate", "3"), ("verify", "abc"), ("export", "-")])
def test_every_command_that_reads_it_refuses(cli: Cli, command: tuple[str, ...]) -> None:
    for _ in range(2):
        ran = cli("rotation", *command)
        (copy,) = copies()
        assert_one_line_of_trouble(ran, "is damaged: ", str(copy), "`firecircle rotation mend`")
        assert "\x1b" not in ran.err
    assert json.loads(copy.read_bytes())["draws"][0]["body"] == "no \x1b[31mjson"


@pytest.mark.usefixtures("broken")
def test_nobody_is_asked_by_rotation_on_a_broken_history(cli: Cli, hosted: Host) -> None:
    server = hosted(answers({}))
    ran = cli("evaluate", "hello", "--rotate", "3", "--models", TRIO)
    assert_one_line_of_trouble(ran, "history: participation 1 in ", "is damaged: row.at: ")
    assert server.requests == []
    assert len(json.loads(cli("circles", "list", "--json").out)["circles"]) == 2
    assert len(copies()) == 1


@pytest.mark.usefixtures("broken")
def test_the_way_out(cli: Cli) -> None:
    assert_one_line_of_trouble(cli("rotation", "mend"), "--yes: needed where nobody can be asked")
    assert_one_line_of_trouble(cli("rotation", "show"), "is damaged")
    ran = cli("rotation", "mend", "--yes", "--json")
    (copy,) = copies()
    assert json.loads(ran.out) == {"participations": 2, "draws": 1, "copy": str(copy)}
    told = json.loads(copy.read_bytes())
    assert [one["pk"] for one in told["unreadable"]["participations"]] == [1, 3]
    left = json.loads(cli("rotation", "export").out)
    assert (len(left["participations"]), len(left["draws"])) == (len(told["participations"]) - 2, 1)
    assert cli("rotation", "mend").out == "everything can be read; nothing was taken out\n"
    assert json.loads(cli("rotation", "mend", "--json").out)["copy"] is None
    assert cli("evaluate", "hello", "--rotate", "4").status == 0


@pytest.mark.usefixtures("broken")
def test_the_way_out_in_words(cli: Cli) -> None:
    ran = cli("rotation", "mend", "--yes")
    (copy,) = copies()
    assert ran.out == f"2 participations and 1 draw taken out; a copy of all is in {copy}\n"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"participations": [{"voice_id": 7}]}', '{"participations": []} and more']
)
def test_a_broken_file_is_not_imported_and_stays_as_it_is(cli: Cli, folder: Path, text: str) -> None:
    file = folder / "history.json"
    file.write_text(text, "utf-8")
    ran = cli("rotation", "import", str(file))
    assert_one_line_of_trouble(ran, "is no history", "nothing was taken from it")
    assert file.read_text("utf-8") == text
    assert json.loads(cli("rotation", "export").out)["participations"] == []
    assert copies() == []
