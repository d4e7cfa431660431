"""The `firecircle` command and all its subcommands. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from typing import Annotated, Any, NamedTuple, cast

import typer
from typer.core import TyperGroup

from firecircle.cli.options import ResultCommand
from firecircle.cli.retired import in_todays_words
from firecircle.cli.trouble import INTERRUPTED, complain, status_of_trouble
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
            status = command_line()(
                args=list(arguments) or ["--help"], prog_name="firecircle", standalone_mode=False
            )
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


class Entry(NamedTuple):
    """A command or group of the list: where it is declared, and its line in `firecircle --help`."""

    module: str
    summary: str
    group: tuple[str, ...] = ()
    """The functions of a group: `list_entries` is its command `list`."""


COMMANDS: Mapping[str, Entry] = {
    "evaluate": Entry("evaluate.command", "Judge a prompt."),
    "batch": Entry("batch.command", "Judge many prompts."),
    "check": Entry("check.command", "Judge the prompt files of a repository."),
    "compare": Entry("compare", "Compare two batches, two runs or two circles."),
    "harden": Entry("harden.command", "Show what a system prompt leaves open, and what to add."),
    "view": Entry("view", "Open the viewer in the browser until Ctrl-C."),
    "replay": Entry("replay", "Conclude a recorded circle again; no voice is asked."),
    "blindspots": Entry("blindspots", "Show what round 1 missed and the discussion found."),
    "quorum": Entry("quorum", "Show whether models cover the roles of a circle."),
    "voices": Entry("voices", "List providers and voices."),
    "doctor": Entry("doctor", "Ask each voice about an attack and a harmless text."),
    "examples": Entry("examples", "List the bundled examples."),
    "calibrate": Entry("calibrate", "Propose roles, confidence and thresholds from labels."),
    "mcp": Entry("mcp", "Serve the circle as tools of an MCP client."),
    "trust": Entry("trust", "Trust the firecircle.toml of a folder."),
    "bank": Entry(
        "bank",
        "Learn, search and share the patterns that circles found.",
        ("list_entries", "show", "learn", "forget", "export_to", "import_from"),
    ),
    "circles": Entry(
        "circles",
        "List, search, show, export and delete saved circles.",
        ("list_circles", "show", "export_to", "import_from", "delete", "label_circle", "cancel"),
    ),
    "lab": Entry(
        "lab.command",
        "Run experiments; measure whether the dialogue pays.",
        ("init", "run", "report", "study", "votes"),
    ),
    "local": Entry("local", "Fetch and list language models of this machine.", ("fetch",)),
    "rotation": Entry(
        "rotation",
        "Show who was invited, how often and by which draws.",
        ("show", "simulate", "export_to", "import_from"),
    ),
}
"""Each module declares a function of the command's name, or the functions of its group."""


def command_line() -> Commands:
    """All commands. Each returns its exit status."""
    app = typer.Typer(cls=Commands, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback()(firecircle)
    return cast("Commands", typer.main.get_command(app))


class LazyCommands(MutableMapping[str, Any]):
    """The commands by name. A module is imported when its command is called or its own help is asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(name, COMMANDS[name])
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _load(name: str, entry: Entry) -> Any:
    module = import_module(f"firecircle.cli.{entry.module}")
    app = typer.Typer(rich_markup_mode=None, add_completion=False, help=entry.summary)
    for function in entry.group or (name,):
        word = name if not entry.group else function.partition("_")[0]
        app.command(word, cls=ResultCommand if word in ("evaluate", "replay") else None)(
            getattr(module, function)
        )
    return typer.main.get_group(app) if entry.group else typer.main.get_command(app)


class Commands(TyperGroup):
    """All commands; typer would let go of an interrupted one without a word."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyCommands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

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
    command: Any = command_line()
    for word in arguments:
        below = getattr(command, "commands", {})
        command = below.get(word, command)
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
    from firecircle.telling.safe_text import printable_line

    if sys.stderr is not None:
        print(printable_line(line), file=sys.stderr, flush=True)
