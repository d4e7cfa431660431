"""The session a command line carries from one call to the next, in a file of its own."""

from __future__ import annotations

import os

from firecircle.errors import ConfigError
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.session import SessionMemory


def opened_session(
    path: str | None, turn: int | None, prompt: MultiNeutrosophicPrompt
) -> SessionMemory | None:
    """The session to judge in. A file that is not there yet begins one; nothing is written here."""
    known = prompt.turn_number
    if turn is not None and known is not None and turn != known:
        raise ConfigError(f"--turn: the known turns make this turn {known}, not {turn}; leave --turn out")
    if path is None:
        return None if turn is None else SessionMemory(turn_count=turn)
    if not os.path.exists(path):
        _require_writable(path)
        return SessionMemory(turn_count=turn or known or 1)
    session = SessionMemory.load(path)
    _require_writable(path)
    if turn is not None and turn != session.turn_count:
        raise ConfigError(
            f"--turn: the session is at turn {session.turn_count}, not {turn}; leave --turn out"
        )
    return session


def save_session(session: SessionMemory, path: str) -> None:
    """Write the session back, all of it or nothing."""
    try:
        session.save(os.path.realpath(path))
    except OSError as unwritable:
        raise ConfigError(f"session: cannot write {path}: {unwritable.strerror or unwritable}") from None


def _require_writable(path: str) -> None:
    """Refuse a place that cannot be written, before anybody is asked and paid."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.isdir(target) or not os.path.isdir(folder):
        raise ConfigError(f"session: {path} is not a file in an existing folder; create the folder first")
    if not os.access(folder, os.W_OK):
        raise ConfigError(f"session: the folder of {path} cannot be written; choose another")
