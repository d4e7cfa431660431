"""What every command names on the error stream: its settings file, and the addresses that prompts go to."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from firecircle.errors import ConfigError, UntrustedSettingsWarning


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
