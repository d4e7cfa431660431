"""The store as `evaluate` uses it: what is judged is kept there, and its bank guides who judges alone.

What cannot be kept never costs the verdict.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from firecircle.cli.printable import printable_line
from firecircle.errors import ConfigError
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.settings import current_settings
from firecircle.store.opening import Store, open_store


def store_for(
    save: bool | None, where: str | None, label: str | None, *, is_read: bool = False
) -> Store | None:
    """The store to keep the outcome in, not opened yet; None when nothing shall be kept.

    A store that `is_read` may be named all the same: its history or its bank is heeded.
    """
    if save is False:
        for option, given in (("--store", None if is_read else where), ("--label", label)):
            if given is not None:
                raise ConfigError(option, "nothing is saved with --no-save", "leave one of them out")
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


def guide_for(k: int | None, mode: str, where: str | None) -> StoredGuide | None:
    """What tells the voices about the k most relevant patterns of the bank, if that is asked for."""
    if k is None:
        return None
    if mode == "fire_circle":
        raise ConfigError("--bank", "a circle judges unaided first", "use --mode single or --mode parallel")
    return StoredGuide(k, where)


@dataclass(frozen=True, slots=True)
class StoredGuide:
    """The bank of a store, as a guide."""

    k: int
    where: str | None

    def guidance_for(self, prompt: MultiNeutrosophicPrompt) -> tuple[str, ...]:
        """A line for each of the most relevant patterns."""
        with open_store(self.where) as store:
            if not store.bank.count():
                raise ConfigError(
                    "--bank", "the bank is empty", "`firecircle bank learn` fills it from the saved circles"
                )
            return store.bank.guidance_for(prompt, self.k)


@contextmanager
def warn_of_unsaved() -> Iterator[list[str]]:
    """A list for why judgements could not be kept; printed after everything else, a line for each reason."""
    unkept: list[str] = []
    try:
        yield unkept
    finally:
        for why, times in Counter(unkept).items():
            count = f" ({times:,} times)" if times > 1 else ""
            print(f"warning: not saved{count}: {printable_line(why)}", file=sys.stderr)
