"""The prompt as it comes from a command line, layer by layer, and the session it continues."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from firecircle.cli.options import require_writable, target_of
from firecircle.errors import ConfigError, PromptError
from firecircle.examples import find_example
from firecircle.prompt import MAX_LAYER_CHARS, EarlierTurn, MultiNeutrosophicPrompt
from firecircle.session import SessionMemory
from firecircle.shapes import config_error
from firecircle.telling.safe_text import printable_line

LONGEST_BYTES = 4 * MAX_LAYER_CHARS
"""No layer within the limit takes more bytes than this."""
LONGEST_NAME = 300
TURNS_SHAPE = 'give a JSON list such as [{"role": "user", "content": "hello"}]'


@dataclass(frozen=True, slots=True)
class Sources:
    """Where each part of the prompt comes from, as the user wrote it; None was not given."""

    system: str | None = None
    application: str | None = None
    user: str | None = None
    turns: str | None = None
    example: str | None = None


def prompt_from(sources: Sources) -> MultiNeutrosophicPrompt:
    """The prompt to judge. Layers given along with an example replace those of the example."""
    layers = {"system": sources.system, "application": sources.application, "user": sources.user}
    given = {name: source for name, source in layers.items() if source is not None}
    if not given and sources.example is None and _is_piped():
        given = {"user": "-"}
    _refuse_second_reader({**given, "turns": sources.turns or ""})
    texts = {name: text_of(name, source) for name, source in given.items()}
    if (source := given.get("user", "")).startswith("@") and not source.startswith("@@"):
        _note_records(source[1:], texts["user"])
    if sources.example is not None:
        prompt = find_example(sources.example).prompt
    else:
        prompt = MultiNeutrosophicPrompt()
    turns = prompt.turns if sources.turns is None else turns_of(text_of("turns", sources.turns))
    merged = {"system": prompt.system, "application": prompt.application, "user": prompt.user, **texts}
    return MultiNeutrosophicPrompt(**merged, turns=turns)


def text_of(name: str, source: str) -> str:
    """The text a source stands for; `@@` at the beginning stands for a plain `@`."""
    if source == "-":
        if sys.stdin is None:
            raise ConfigError(name, "standard input is closed", "give text or @file")
        return _decode(name, "standard input", _read(name, sys.stdin.buffer))
    if source.startswith("@@"):
        return source[1:]
    if not source.startswith("@"):
        _note_file(name, source)
        return _plain(name, source)
    path = source[1:]
    try:
        with Path(path).open("rb") as file:
            return _decode(name, path, _read(name, file))
    except OSError as unreadable:
        raise ConfigError(
            name,
            f"cannot read {path or 'a file without a name'}: {unreadable.strerror or unreadable}",
            "give a readable file, or write @@ for text that begins with @",
        ) from None


def _note_file(name: str, source: str) -> None:
    """Say that a text is also the name of a file, which was probably meant."""
    if len(source) < LONGEST_NAME and source.strip() == source and "." in source and os.path.isfile(source):
        shown = printable_line(source)
        print(
            f"note: {name}: {shown} is a file, and its name was read as text; @{shown} reads it",
            file=sys.stderr,
        )


def turns_of(text: str) -> tuple[EarlierTurn, ...]:
    """The earlier turns written as JSON."""
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as broken:
        raise PromptError("turns", f"not JSON ({broken})", TURNS_SHAPE) from None
    if not isinstance(listed, list):
        raise PromptError("turns", "not a list", TURNS_SHAPE)
    try:
        return tuple(EarlierTurn.model_validate(turn) for turn in listed)
    except ValidationError as invalid:
        wrong = config_error(invalid, "turns")
        if wrong.field == "turns":  # a role that nobody has
            raise PromptError("turns", wrong.message, wrong.remedy) from None
        raise PromptError(
            wrong.field or "turns", wrong.message, TURNS_SHAPE, shape=wrong.field and "turns"
        ) from None


def _note_records(path: str, text: str) -> None:
    """Say that a file which looks like many prompts is about to be judged as one."""
    from firecircle.cli.batch.reading import look_like_records

    lines = [line for line in text.splitlines() if line.strip()]
    if look_like_records(path, lines):
        print(
            f"note: {printable_line(path)} looks like {len(lines):,} lines of records and is judged as one"
            f" message; `firecircle batch {printable_line(path)}` judges each",
            file=sys.stderr,
        )


def _is_piped() -> bool:
    return sys.stdin is not None and not sys.stdin.isatty()


def _refuse_second_reader(sources: dict[str, str]) -> None:
    readers = [name for name, source in sources.items() if source == "-"]
    if len(readers) > 1:
        raise ConfigError(
            readers[1], f"standard input can be only one layer and is {readers[0]} already", "use @file"
        )


def _read(name: str, file: BinaryIO) -> bytes:
    data = file.read(LONGEST_BYTES + 1)
    if len(data) > LONGEST_BYTES:
        raise PromptError(
            name,
            f"more than {LONGEST_BYTES:,} bytes",
            f"the limit is {MAX_LAYER_CHARS:,} characters per layer; judge it in parts",
        )
    return data


def _decode(name: str, source: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        raise PromptError(
            name, f"{source} is not UTF-8 text (byte {broken.start})", "convert it, for instance with iconv"
        ) from None


def _plain(name: str, text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise PromptError(name, "the text is not UTF-8", "put it into a file and convert it, then use @file")
    return text


def opened_session(
    path: str | None, turn: int | None, prompt: MultiNeutrosophicPrompt
) -> SessionMemory | None:
    """The session to judge in. A file that is not there yet begins one; nothing is written here."""
    known = prompt.turn_number
    if turn is not None and known is not None and turn != known:
        raise ConfigError("--turn", f"the known turns make this turn {known}, not {turn}", "leave --turn out")
    if path is None:
        return None if turn is None else SessionMemory(turn_count=turn)
    if not os.path.exists(path):
        require_writable(path, "session")
        return SessionMemory(turn_count=turn or known or 1)
    session = SessionMemory.load(path)
    require_writable(path, "session")
    if turn is not None and turn != session.turn_count:
        raise ConfigError(
            "--turn", f"the session is at turn {session.turn_count}, not {turn}", "leave --turn out"
        )
    return session


def save_session(session: SessionMemory, path: str) -> None:
    """Write the session back, all of it or nothing."""
    try:
        session.save(target_of(path, "session"))
    except OSError as unwritable:
        raise ConfigError("session", f"cannot write {path}: {unwritable.strerror or unwritable}") from None
