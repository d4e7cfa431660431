"""Where output goes: a console that takes nothing for markup and prints on any terminal or none."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, RenderableType

WIDEST = 100
"""Lines longer than this are tiring to read, however wide the terminal."""
NARROWEST = 40

_STAND_INS = str.maketrans("█░◆↺⇄≈✗→…“”·±", '#.^<x~X>."".~')


def console_on(stream: TextIO) -> Console:
    """A console that shows styles and control sequences only when the stream is a terminal."""
    _make_encodable(stream)
    is_terminal = stream.isatty()
    console = Console(
        file=stream,
        force_terminal=is_terminal,
        color_system="auto" if is_terminal else None,
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.width = max(NARROWEST, min(console.width, WIDEST if is_terminal else console.width))
    return console


def print_json(document: Any) -> None:
    """One JSON document on standard output, in ASCII, so that no text in it can steer a terminal."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    sys.stdout.flush()


def print_all(console: Console, parts: Iterable[RenderableType]) -> None:
    """The parts of a report, one below the other. Only a terminal has a width that text must keep to."""
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str) and not console.is_terminal)


def print_line(console: Console, line: str) -> None:
    """One line as it is, however long: a reader of a pipe must not find it broken in two."""
    print(line, file=console.file, flush=True)


def _make_encodable(stream: TextIO) -> None:
    """What the stream's encoding lacks is replaced by a stand-in instead of raising."""
    codecs.register_error("firecircle.stand_in", _stand_in)
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="firecircle.stand_in")


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    known = unknown.translate(_STAND_INS)
    return "".join(character if character.isascii() else "?" for character in known), error.end
