"""A broken history at the command line: refused in one line with what deletes the row, and left as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from firecircle.store.opening import open_store
from tests.cli.running import TRIO, Ran, assert_one_line_of_trouble
from tests.cli.telling import answers
from tests.loopback import LoopbackServer, Script

Cli = Callable[..., Ran]
Host = Callable[[Script], LoopbackServer]


@pytest.fixture
def broken(cli: Cli) -> None:
    """A store with a sitting of four and a draw, of both of which something was garbled."""
    assert cli("evaluate", "hello", "--rotate", "2").status == 0
    assert cli("evaluate", "hello", "--rotate", "2").status == 0
    with open_store() as store, store.database.writing() as connection:
        connection.execute(sa.text("UPDATE participations SET at = 'long ago' WHERE pk IN (1, 3)"))
        connection.execute(sa.text("UPDATE draws SET body = 'no \x1b[31mjson' WHERE pk = 1"))


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("command", [("show",), ("simulate", "3"), ("show", "abc"), ("export", "-")])
def test_every_command_that_reads_it_refuses(cli: Cli, command: tuple[str, ...]) -> None:
    for _ in range(2):
        ran = cli("rotation", *command)
        assert_one_line_of_trouble(ran, "has a damaged row: ", "save a copy and DELETE FROM ")
        assert "\x1b" not in ran.err


@pytest.mark.usefixtures("broken")
def test_nobody_is_asked_by_rotation_on_a_broken_history(cli: Cli, hosted: Host) -> None:
    server = hosted(answers({}))
    ran = cli("evaluate", "hello", "--rotate", "3", "--models", TRIO)
    assert_one_line_of_trouble(ran, "has a damaged row: participations 1: row.at: ")
    assert server.requests == []
    assert len(json.loads(cli("circles", "list", "--json").out)["circles"]) == 2


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"participations": [{"voice_id": 7}]}', '{"participations": []} and more']
)
def test_a_broken_file_is_not_imported_and_stays_as_it_is(cli: Cli, folder: Path, text: str) -> None:
    file = folder / "history.json"
    file.write_text(text, "utf-8")
    ran = cli("rotation", "import", str(file))
    assert_one_line_of_trouble(ran, "is not a history", "nothing was imported")
    assert file.read_text("utf-8") == text
    assert json.loads(cli("rotation", "export").out)["participations"] == []
