"""Keeping what `evaluate` judges: where, under which label, and never at the cost of the verdict."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from firecircle.cli.printable import printable_line
from firecircle.errors import ConfigError, NotKeptWarning
from firecircle.settings import current_settings
from firecircle.store.opening import Store

SHORT = 8
"""How much of an id is enough to find a circle again."""


def store_for(
    save: bool | None, where: str | None, label: str | None, *, is_read: bool = False
) -> Store | None:
    """The store to keep the outcome in, not opened yet; None when nothing shall be kept.

    A store that `is_read` may be named all the same: its history or its bank is heeded.
    """
    if save is False:
        for option, given in (("--store", None if is_read else where), ("--label", label)):
            if given is not None:
                raise ConfigError(option, "nothing is kept with --no-save", "leave one of them out")
        return None
    if save is None and where is None and not current_settings().store.save:
        return None
    return Store(where)


def label_of(label: str | None, example: str | None, *, changed: bool) -> str | None:
    """What the prompt really is: as told, or as the bundled example says if nothing of it was replaced.

    An attack is labelled with its type, so that calibration knows which lenses should have seen it.
    """
    if label is not None or example is None or changed:
        return label
    from firecircle.examples import find_example

    bundled = find_example(example)
    return f"attack:{bundled.pattern_type}" if bundled.label == "attack" else bundled.label


def short_id(kept_as: str) -> str:
    """As much of an id as finds it again; one with a number behind it is printed whole."""
    return kept_as if re.search(r"-\d+$", kept_as) else kept_as[:SHORT]


@contextmanager
def told_when_not_kept(stream: TextIO | None = None) -> Iterator[None]:
    """Turn the warning that a judgement could not be kept into one line, once everything else is said."""
    unkept: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", NotKeptWarning)
        show = warnings.showwarning

        def note(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, NotKeptWarning):
                unkept.append(str(message))
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = note
        try:
            yield
        finally:
            for why in unkept:
                print(f"warning: not kept: {printable_line(why)}", file=stream or sys.stderr)
