"""Options that several commands take are declared once, and the filters mean the same everywhere."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from typing import Any

import pytest
from typer.models import ArgumentInfo, OptionInfo

from firecircle.cli.main import COMMANDS, command_line
from firecircle.cli.options import FilterOptions, with_options
from firecircle.cli.retired import in_todays_words
from firecircle.errors import ConfigError
from tests.goldens import every_help

Declared = OptionInfo | ArgumentInfo

FILTERING = ("circles list", "circles export", "circles delete", "bank learn", "blindspots")
"""The commands that narrow down circles."""


def declared() -> Iterator[tuple[str, dict[str, Declared]]]:
    """Every command with what it takes."""
    for name, entry in COMMANDS.items():
        module = import_module(f"firecircle.cli.{entry.module}")
        for function in entry.group or (name,):
            path = f"{name} {function.partition('_')[0]}" if entry.group else name
            parameters = inspect.signature(getattr(module, function), eval_str=True).parameters.values()
            yield (
                path,
                {
                    parameter.name: extra
                    for parameter in parameters
                    for extra in getattr(parameter.annotation, "__metadata__", ())
                },
            )


@pytest.fixture(scope="module")
def commands() -> dict[str, dict[str, Declared]]:
    return dict(declared())


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


def test_every_command_that_filters_circles_takes_the_same_filters(
    commands: dict[str, dict[str, Declared]],
) -> None:
    where = commands["circles list"]["where"]
    assert {name for name, options in commands.items() if options.get("where") is where} == {*FILTERING}
    own = {name for name in commands["circles list"] if name in FilterOptions.__slots__}
    rare = {"until", "voice", "in_run", "outcome", "reviewed", "mode", "status"}
    assert own | rare == {field.name for field in fields(FilterOptions)}
    assert isinstance(where, OptionInfo)
    words = (where.help or "").replace(",", " ").replace(":", " ").split()
    assert [field.name for field in fields(FilterOptions) if field.name not in words] == []


def test_filters_by_name_are_those_of_the_options() -> None:
    named = FilterOptions().narrowed(["label=attack", "alarm=no", "in_run=yes", "mode=single"])
    assert named == FilterOptions(label="attack", alarm=False, in_run=True, mode="single")
    for wrong, word in (
        (["labl=x"], "fields: "),
        (["alarm=perhaps"], "neither yes nor no"),
        (["mode=loud"], "not one of single"),
        (["label=a", "label=b"], "twice"),
        (["label="], "empty"),
    ):
        with pytest.raises(ConfigError, match=word):
            FilterOptions().narrowed(wrong)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("evaluate hi --strict --reserves a,b", "evaluate hi --set=failure_mode=strict --set=reserves=a,b"),
        ("evaluate hi --rotate 3 --shadow", "evaluate hi --rotate 3 --rotate=shadow"),
        ("evaluate --system @s --batch b.csv --batch-name x", "batch b.csv --system @s --name=x"),
        ("evaluate --batch=b.csv -- --batch", "batch b.csv -- --batch"),
        ("evaluate -- --batch x --strict", "evaluate -- --batch x --strict"),
        ("scan c --out o --shard-rows 5 --budget 1", "batch c --out o --part-rows=5 --budget-usd=1"),
        ("circles prune --before 90d --no-alarm", "circles delete --where=until=90d --where=alarm=no"),
        ("circles export f --since 7d --html x", "circles export f --where=since=7d --html x"),
        ("lab estimate p.toml", "lab run --dry-run p.toml"),
        ("lab resume last --retry-failed", "lab run last --retry-failed"),
        ("lab list --json", "lab report --json"),
        ("rotation verify 1a2b", "rotation show 1a2b"),
        ("bank search words --most 2", "bank list words --limit=2"),
    ],
)
def test_retired_words_are_read_as_todays(old: str, new: str) -> None:
    assert in_todays_words(old.split()) == new.split()


def test_the_surface_stays_small(commands: dict[str, dict[str, Declared]]) -> None:
    """A command or option more is worth it only where another goes."""
    assert len(commands) <= 38
    assert sum(map(len, commands.values())) <= 280
    assert len(commands["evaluate"]) <= 26  # its argument, and 25 options


def test_options_stand_where_the_command_has_them_and_arrive_in_one_piece() -> None:
    received: list[Any] = []

    @with_options(FilterOptions)
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


def test_listing_all_commands_loads_nothing_heavy() -> None:
    heavy = "{'aiohttp', 'numpy', 'pydantic', 'rich', 'sqlalchemy', 'starlette'}"
    code = (
        f"import sys; from firecircle.cli.main import run; run(['--help']); print({heavy} & {{*sys.modules}})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")


def test_a_line_of_the_list_is_not_cut() -> None:
    longest = max(map(len, COMMANDS))
    assert [name for name, entry in COMMANDS.items() if len(entry.summary) > 80 - longest - 4] == []


def test_no_help_shows_an_object_of_python() -> None:
    helps = dict(every_help(command_line(), "firecircle"))
    assert len(helps) > 30
    assert [name for name, text in helps.items() if " object at 0x" in " ".join(text.split())] == []
