"""What the command line does when something is wrong: one line on the error stream and status 2."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from typer.exceptions import TyperException

from firecircle.cli.printable import printable_line
from firecircle.errors import FireCircleError

NO_ALARM, ALARM, TROUBLE, INTERRUPTED = 0, 1, 2, 130

AS_OPTIONS = (
    (r"^(?:FireCircleConfig|EvaluationConfig|MultiNeutrosophicPrompt): ", ""),
    (r"^(?:FireCircleConfig|EvaluationConfig)\.alarm_threshold:", "--threshold:"),
    (r"^(?:FireCircleConfig\.|EvaluationConfig\.)?budget_(usd|tokens):", r"--budget-\1:"),
    (r"or use budget_tokens", "or use --budget-tokens"),
    (r"^empty_chair_prompt_path:", "--chair-prompt:"),
    (r"^(?:FireCircleConfig\.)?decision_domain:", "--domain:"),
    (r"^required_count:", "N:"),
    (r"^available_voices:", "--models:"),
    (r"set enforce_quorum=False", "pass --no-quorum"),
    (r", or give api_key= together with provider='\w+'", ""),
    (r"the embedded circle needs none: FireCircleConfig\.embedded\(\)", "or leave --models out"),
)
"""The engine's errors name fields and calls of the library; here the same things are options."""


@dataclass(slots=True)
class Trouble:
    """How a command that did not come to its end leaves."""

    status: int = TROUBLE


@contextmanager
def status_of_trouble() -> Iterator[Trouble]:
    """Turn whatever goes wrong inside into a line for the user and an exit status."""
    trouble = Trouble()
    try:
        yield trouble
    except TyperException as misuse:
        complain(_as_line(misuse))
    except FireCircleError as mistake:
        complain(str(mistake))
    except KeyboardInterrupt:
        trouble.status = INTERRUPTED
        complain("interrupted")
    except (BrokenPipeError, SystemExit):
        # Whoever read our output left (typer then asks to leave with 1, which means alarm). Nobody is
        # there to be told, and the interpreter must not try when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    except Exception:  # noqa: BLE001 - a bug must not leave with 1, which means alarm
        traceback.print_exc()
        complain("this is a bug in firecircle; please report it with the lines above")


def _as_line(misuse: TyperException) -> str:
    """The parser's complaint in the shape of all others: the option, what is wrong, where to look."""
    context = getattr(misuse, "ctx", None)
    path = context.command_path if context else "firecircle"
    told = re.sub(r"^Invalid value for '(.+?)': (?:Value error, )?", r"\1: ", misuse.format_message())
    told = told.replace("' / '", " / ", 1)
    return f"{told.rstrip('.')}; `{path} --help` tells more"


def in_options(message: str) -> str:
    """The engine's words in those of the command line."""
    for written, option in AS_OPTIONS:
        message = re.sub(written, option, message)
    return message


def complain(message: str) -> None:
    """One line on the error stream."""
    line = f"error: {printable_line(in_options(message))}"
    if sys.stderr.isatty():
        line = textwrap.fill(line, shutil.get_terminal_size().columns, break_on_hyphens=False)
    print(line, file=sys.stderr)
