"""What the command line does when something is wrong: one line on the error stream and status 2."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import textwrap
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TextIO

from typer.exceptions import TyperException

from firecircle.errors import (
    ConfigError,
    FireCircleError,
    MissingKeyError,
    UnknownModelError,
    install_command,
)
from firecircle.telling.safe_text import printable_line
from firecircle.verdict import VerdictWord

NO_ALARM, ALARM, TROUBLE, UNREAD, INCOMPLETE, INTERRUPTED = 0, 1, 2, 3, 4, 130
STATUS: Mapping[VerdictWord, int] = {
    "alarm": ALARM,
    "unsure": NO_ALARM,
    "no_alarm": NO_ALARM,
    "unread": UNREAD,
    "no_verdict": TROUBLE,
}
"""The exit status of a verdict."""
MOST_COMPLAINTS = 20
"""So many bad circles or lines are told one by one; of the others the count is enough."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""The disk is full, spoilt or not to be written on: nothing that we could mend."""

JUDGING_OPTIONS = {
    "alarm_threshold": "--threshold",
    "budget_usd": "--budget-usd",
    "mode": "--mode",
    "models": "--models",
    "focus": "--focus",
    "seed": "--seed",
    "max_rounds": "--rounds",
}
"""How commands that judge write these fields of a configuration; the others are `--set FIELD=VALUE`."""
_SET = ("alarm_rule", "budget_tokens", "decision_domain", "empty_chair_prompt_path")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
OPTIONS = {
    **{name: f"--set {name}" for name in _SET},
    **{name: JUDGING_OPTIONS[name] for name in ("alarm_threshold", "budget_usd")},
    "available_voices": "--models",
    "required_count": "N",
}
"""The engine's errors name fields of the library; here the same things are options."""
WAYS_OUT = {
    "use budget_tokens": "use --set budget_tokens=N",
    "set enforce_quorum=False": "pass --set enforce_quorum=false",
}
"""What the engine advises, and what that is on the command line."""


def require_lab(command: str, *packages: str) -> None:
    """Of a command that needs the extra `lab`: a missing package is told before work begins."""
    missing = [name for name in ("numpy", "scipy", *packages) if find_spec(name) is None]
    if missing:
        raise ConfigError(command, f"needs {', '.join(missing)}", install_command("lab"))


@dataclass(slots=True)
class Trouble:
    """How a command that did not come to its end leaves."""

    status: int = TROUBLE


@contextmanager
def status_of_trouble(options: Callable[[], Collection[str]]) -> Iterator[Trouble]:
    """Turn whatever goes wrong inside into a line for the user and an exit status.

    `options` tells those of the command: no advice may name another.
    """
    trouble = Trouble()
    try:
        yield trouble
    except TyperException as misuse:
        complain(_as_line(misuse))
    except FireCircleError as mistake:
        complain(with_known_options(in_options(mistake), options()))
    except KeyboardInterrupt:
        trouble.status = INTERRUPTED
        complain("interrupted")
    except SystemExit as left:
        # Completions are printed, or whoever read our output left: typer then asks to leave with 1, which
        # means alarm.
        if left.code in (0, None):
            trouble.status = NO_ALARM
        else:
            _write_nothing_more()
    except BrokenPipeError:  # nobody is there to be told
        _write_nothing_more()
    except MemoryError:
        complain("not enough memory; close other programs, or judge fewer prompts at once")
    except Exception as error:  # noqa: BLE001 - a bug must not leave with 1, which means alarm
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            _write_nothing_more()
            where = error.filename or "the output"
            complain(f"{where}: cannot be written: {error.strerror}")
        elif isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            complain("too many open files; `ulimit -n 1024` allows more")
        elif type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
            complain(f"DuckDB: {str(error).partition(chr(10))[0]}")  # such as a full disk or damaged file
        else:
            traceback.print_exc()
            complain("this is a bug in firecircle; please report it with the lines above")


def _write_nothing_more(stream: TextIO | None = sys.__stdout__) -> None:
    """Let go of a stream, so that the interpreter does not fail once more when it flushes it and leave with
    a status of its own."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _as_line(misuse: TyperException) -> str:
    """The parser's complaint in the shape of all others: the option, what is wrong, where to look."""
    context = getattr(misuse, "ctx", None)
    path = context.command_path if context else "firecircle"
    message = re.sub(r"^Invalid value for '(.+?)': (?:Value error, )?", r"\1: ", misuse.format_message())
    message = message.replace("' / '", " / ", 1)
    return f"{message.rstrip('.')}; `{path} --help` shows more"


def in_options(error: FireCircleError) -> str:
    """The engine's words in those of the command line."""
    match error:
        case MissingKeyError():
            return f"{error.provider} needs a key: set {error.variable}; or leave --models out"
        case UnknownModelError():
            return str(_with_options(error.without_code()))
        case ConfigError():
            return str(_with_options(error))
    return str(error)


def with_known_options(line: str, options: Collection[str]) -> str:
    """The complaint without advice to pass an option that the command lacks; `other commands` have theirs."""
    if "--no-quorum" in options:  # `replay` has a shorter word for it
        line = line.replace("--set enforce_quorum=false", "--no-quorum")
    complaint, *advice = line.split("; ")
    possible = [
        words
        for words in advice
        if all(option in options for option in OPTION.findall(re.sub("`.*?`", "", words)))
    ]
    return "; ".join([complaint, *possible])


def _with_options(error: ConfigError) -> ConfigError:
    """The mistake with the option in place of the field, unless the field stands in a file."""
    if not error.place and (error.field is None or error.field in OPTIONS):
        error = error.renamed(error.field and OPTIONS[error.field])
    remedy = error.remedy
    for advice, option in WAYS_OUT.items():
        remedy = remedy and remedy.replace(advice, option)
    return error.advising(remedy)


def complain(message: str) -> None:
    """One line on the error stream."""
    line = f"error: {printable_line(message)}"
    if sys.stderr.isatty():
        line = textwrap.fill(line, shutil.get_terminal_size().columns, break_on_hyphens=False)
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:  # nobody can be told; the status still says it
        _write_nothing_more(sys.__stderr__)
