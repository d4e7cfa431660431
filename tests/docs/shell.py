"""A reader's terminal: command lines as the pages print them, run in this process in a folder of the reader's."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from firecircle.cli.main import command_line, run


@cache
def _commands() -> Any:
    return command_line()


@dataclass(frozen=True)
class Typed:
    """One command line of a page and what the page shows below it."""

    line: str
    shown: tuple[str, ...] = ()

    @property
    def commands(self) -> list[Piped]:
        """The commands of the line; a comment behind them is left out."""
        words = shlex.shlex(self.line, posix=True, punctuation_chars="&|<>")
        words.whitespace_split = True
        groups: list[list[str]] = [[]]
        for word in words:
            if word in ("&&", "&"):
                groups.append([])
            else:
                groups[-1].append(word)
        return [Piped.of(group) for group in groups if group]


@dataclass(frozen=True)
class Piped:
    """One command with the files it reads from and writes to."""

    arguments: list[str]
    reads: Path | None = None
    writes: Path | None = None

    @staticmethod
    def of(words: list[str]) -> Piped:
        arguments: list[str] = []
        files: dict[str, Path] = {}
        left = iter(words)
        for word in left:
            if word in "<>":
                files[word] = Path(next(left))
            else:
                arguments.append(word)
        return Piped(arguments, files.get("<"), files.get(">"))

    @property
    def is_ours(self) -> bool:
        return self.arguments[0] == "firecircle"

    def parse(self) -> None:
        """Let the command line read it without carrying it out: unknown options and bad values are refused."""
        command: Any = _commands()
        name, *rest = self.arguments
        while subcommands := getattr(command, "commands", None):
            command, name, rest = subcommands[rest[0]], rest[0], rest[1:]
        command.make_context(name, list(rest)).close()


def ran(command: Piped) -> tuple[int, str]:
    """Run a command of ours; its status and everything it printed, in the order of printing."""
    arguments = [NAMED[word]() if word in NAMED else word for word in command.arguments[1:]]
    screen = io.StringIO()
    out = io.StringIO() if command.writes else screen
    given = command.reads.read_text("utf-8") if command.reads else ""
    with _standard_input(given), redirect_stdout(out), redirect_stderr(screen):
        status = run(arguments)
    if command.writes:
        command.writes.write_text(out.getvalue(), "utf-8")
    return status, screen.getvalue()


def _first(*listing: str, key: str = "id", rows: str | None = None) -> str:
    """The id of whatever a listing has first."""
    out = io.StringIO()
    with redirect_stdout(out):
        run([*listing, "--json"])
    listed = json.loads(out.getvalue())
    return str((listed[rows] if rows else listed)[0][key])


NAMED = {
    "1a2b3c4d": lambda: _first("circles", "list", rows="circles"),
    "1f06": lambda: _first("bank", "list", rows="entries"),
    "1f400f5f": lambda: _first("rotation", "show", rows="draws", key="draw_id"),
    "RUN": lambda: _first("lab", "list", key="run_id"),
    "OTHER": lambda: _first("lab", "list", key="run_id"),
    "RUN_ID": lambda: _first("lab", "list", key="run_id"),
}
"""What the pages call some circle, entry of the bank, draw or run, and which is meant in this folder."""


@contextmanager
def _standard_input(text: str) -> Iterator[None]:
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8")
    try:
        yield
    finally:
        sys.stdin = before


def typed_in(block: str) -> Iterator[Typed]:
    """The command lines of a console block, each with the output that stands below it."""
    for piece in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        line, *shown = piece.rstrip("\n").split("\n")
        yield Typed(line, tuple(shown) if any(text.strip() for text in shown) else ())


def shows(printed: str, shown: tuple[str, ...]) -> bool:
    """Whether a page's output is what was printed, where `…` stands for anything, other lines included."""
    unknown = re.compile("…|" + "|".join(NAMED))
    lines = [" ".join(line.split()) for line in shown if line.strip()]
    pattern = r"\s*".join(".*?".join(map(re.escape, unknown.split(line))) for line in lines)
    return re.search(pattern, re.sub(r"[ \t]+", " ", printed), re.DOTALL) is not None
