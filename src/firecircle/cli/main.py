"""The `firecircle` command and all its subcommands. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from firecircle.cli.bank.command import bank_commands
from firecircle.cli.batch.command import batch
from firecircle.cli.blindspots.command import blindspots
from firecircle.cli.calibrate import calibrate
from firecircle.cli.check.command import check
from firecircle.cli.circles.command import circles_commands
from firecircle.cli.compare.command import compare
from firecircle.cli.evaluate.command import evaluate
from firecircle.cli.examples import examples
from firecircle.cli.harden.command import harden
from firecircle.cli.lab.command import lab_commands
from firecircle.cli.local import local_commands
from firecircle.cli.mcp.command import mcp
from firecircle.cli.options import ResultCommand
from firecircle.cli.quorum.command import quorum
from firecircle.cli.replay.command import replay
from firecircle.cli.retired import in_todays_words
from firecircle.cli.rotation.command import rotation_commands
from firecircle.cli.trouble import INTERRUPTED, complain, status_of_trouble
from firecircle.cli.trust import trust
from firecircle.cli.view import view
from firecircle.cli.voices.command import doctor, voices
from firecircle.errors import ConfigError, UntrustedSettingsWarning

MOST_FILES = 4096
"""More than any command needs."""


def run(arguments: Sequence[str], begin: Callable[[], None] = lambda: None) -> int:
    """Run one command line and return its exit status; no mistake of the user ends in a traceback.

    `begin` is called as soon as that is sure.
    """
    arguments = in_todays_words(arguments)
    with status_of_trouble(lambda: options_of(arguments)) as trouble:
        begin()
        _allow_many_files()
        with _spans(), naming_addresses():
            if (
                arguments
                and arguments[0] != "trust"
                and arguments[0][0:1] != "-"
                and "--help" not in arguments
            ):
                name_settings()
            called = _commands(arguments[0] if arguments else "")
            status = called(args=list(arguments) or ["--help"], prog_name="firecircle", standalone_mode=False)
        if status != INTERRUPTED:
            sys.stdout.flush()  # what cannot be written must be known while the status can still say so
        return status if isinstance(status, int) else 0
    return trouble.status


def _allow_many_files() -> None:
    """Take as many open files as the system lets this process have: connections and stores need them."""
    try:
        import resource
    except ImportError:  # Windows: no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _spans() -> AbstractContextManager[None]:
    """Spans, where the environment asks for them; else nothing is imported for it."""
    if not os.environ.get("FIRECIRCLE_OTEL"):
        return nullcontext()
    from firecircle.telemetry import as_the_environment_says

    return as_the_environment_says()


def command_line() -> typer.Typer:
    """All commands. Each returns its exit status."""
    app = typer.Typer(cls=Commands, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback()(firecircle)
    for command in (
        evaluate,
        batch,
        check,
        compare,
        harden,
        view,
        replay,
        blindspots,
        quorum,
        voices,
        doctor,
        examples,
        calibrate,
        mcp,
        trust,
    ):
        app.command(cls=ResultCommand if command in (evaluate, replay) else None)(command)
    app.add_typer(bank_commands(), name="bank")
    app.add_typer(circles_commands(), name="circles")
    app.add_typer(lab_commands(), name="lab")
    app.add_typer(local_commands(), name="local")
    app.add_typer(rotation_commands(), name="rotation")
    return app


@cache
def _commands(word: str) -> Any:
    """What reads a command line that begins with this word.

    Typer looks at every option of every command, which takes longer than many a command, so where the word
    is a command it gets that one alone.
    """
    app = command_line()
    commands = [each for each in app.registered_commands if each.callback and each.callback.__name__ == word]
    groups = [each for each in app.registered_groups if each.name == word]
    if commands or groups:
        app.registered_commands, app.registered_groups = commands, groups
    return typer.main.get_command(app)


class Commands(TyperGroup):
    """All commands; typer would let go of an interrupted one without a word."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the command line."""
        try:
            return super().make_context(*args, **extra)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            complain("interrupted")
            return INTERRUPTED


def options_of(arguments: Sequence[str]) -> frozenset[str]:
    """The options of the command that these arguments call."""
    command = _commands(arguments[0] if arguments else "")
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    return frozenset(
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    )


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"firecircle {version('firecircle')}")
        raise typer.Exit


def firecircle(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Find manipulation in prompts for LLMs: several voices judge alone, then discuss."""


def name_settings() -> None:
    """Name the settings file that is in force here, and what of it is ignored."""
    from firecircle.settings import current_settings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustedSettingsWarning)  # the note says it
        try:
            note = current_settings().note()
        except ConfigError:
            return  # a command that needs the file reports it; others work without
    if note:
        _say(note)


@contextmanager
def naming_addresses() -> Iterator[None]:
    """Name each address beyond this machine once, before the first prompt goes there."""
    log = logging.getLogger("firecircle.voices.hosted.connections")
    names = _Names(logging.INFO)
    before = log.level
    log.addHandler(names)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(names)


class _Names(logging.Handler):
    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._named: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if line not in self._named:
            self._named.add(line)
            _say(line)


def _say(line: str) -> None:
    from firecircle.cli.printable import printable_line

    if sys.stderr is not None:
        print(printable_line(line), file=sys.stderr, flush=True)
