"""Options that several commands take are declared once, and the filters mean the same everywhere."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
import typer
from typer.models import ArgumentInfo, OptionInfo

from firecircle.cli.main import command_line
from firecircle.cli.options import FilterOptions, with_options
from tests.goldens import every_help

Declared = OptionInfo | ArgumentInfo

FILTERING = {
    "circles list": set(),
    "circles export": set(),
    "circles prune": {"until"},
    "bank learn": {"alarm", "in_run", "mode", "status", "text"},
    "blindspots": {"alarm", "in_run", "mode", "status", "text", "voice"},
}
"""The commands that narrow down circles, and the filters they go without."""


def declared(app: typer.Typer, path: str = "") -> Iterator[tuple[str, dict[str, Declared]]]:
    """Every command with what it takes."""
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__
        parameters = inspect.signature(command.callback, eval_str=True).parameters.values()
        yield (
            f"{path}{name}",
            {
                parameter.name: extra
                for parameter in parameters
                for extra in getattr(parameter.annotation, "__metadata__", ())
            },
        )
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from declared(group.typer_instance, f"{group.name} ")


@pytest.fixture(scope="module")
def commands() -> dict[str, dict[str, Declared]]:
    return dict(declared(command_line()))


def test_what_reads_the_same_in_two_commands_is_declared_once(
    commands: dict[str, dict[str, Declared]],
) -> None:
    declarations: dict[tuple[object, ...], dict[int, str]] = defaultdict(dict)
    for command, options in commands.items():
        for name, option in options.items():
            text = (name, option.metavar, option.help, option.min, option.max)
            declarations[text].setdefault(id(option), f"{command}: {name}")
    retyped = [sorted(places.values()) for places in declarations.values() if len(places) > 1]
    assert retyped == []


def test_every_command_that_filters_circles_takes_the_shared_filters(
    commands: dict[str, dict[str, Declared]],
) -> None:
    shared = commands["circles list"]
    names = [field.name for field in fields(FilterOptions)]
    for command, without in FILTERING.items():
        taken = [name for name, option in commands[command].items() if option is shared.get(name)]
        assert [name for name in taken if name in names] == [name for name in names if name not in without]


def test_no_other_command_takes_some_of_them(commands: dict[str, dict[str, Declared]]) -> None:
    shared = {id(commands["circles list"][field.name]) for field in fields(FilterOptions)}
    taking = {command for command, options in commands.items() if shared & set(map(id, options.values()))}
    assert taking == set(FILTERING)


def test_options_stand_where_the_command_has_them_and_arrive_in_one_piece() -> None:
    received: list[Any] = []

    @with_options(FilterOptions, without=("status", "text"))
    def command(before: int = 1, *, given: FilterOptions, after: int = 2) -> int:
        received.append((before, given, after))
        return 3

    names = list(inspect.signature(command).parameters)
    assert names[0] == "before"
    assert names[-1] == "after"
    assert "given" not in names
    assert "status" not in names
    values = dict.fromkeys(names[1:-1]) | {"label": "attack"}
    assert command(before=5, after=6, **values) == 3
    assert received == [(5, FilterOptions(label="attack"), 6)]


def test_declaring_all_commands_loads_nothing_heavy() -> None:
    heavy = "{'aiohttp', 'numpy', 'pydantic', 'rich', 'sqlalchemy', 'starlette'}"
    code = f"import sys; from firecircle.cli.main import command_line; command_line(); print({heavy} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_no_help_shows_an_object_of_python() -> None:
    helps = dict(every_help(typer.main.get_command(command_line()), "firecircle"))
    assert len(helps) > 30
    assert [name for name, text in helps.items() if " object at 0x" in " ".join(text.split())] == []
