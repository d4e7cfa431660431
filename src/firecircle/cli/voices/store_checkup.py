"""`firecircle doctor --store`: whether the store is sound, and what of it can be saved."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

from firecircle.cli.output import console_on, print_json, print_line
from firecircle.cli.printable import printable_line
from firecircle.store.checkup import Checkup, Salvaged, check_store, salvage
from firecircle.telling.words import counted

MOST_LOST = 20


def check_up(new: str | None, *, as_json: bool) -> int:
    """Check the store and save what can be read, if asked; the exit status."""
    found = check_store()
    saved = salvage(None, Path(new)) if new else None
    if as_json:
        document = {**asdict(found), "sound": found.sound, "salvaged": asdict(saved) if saved else None}
        print_json(document)
    else:
        console = console_on(sys.stdout)
        for line in _lines(found, saved, new):
            print_line(console, printable_line(line))
    return 0 if found.sound else 1


def _lines(found: Checkup, saved: Salvaged | None, new: str | None) -> list[str]:
    if found.sound:
        lines = [f"sound: {found.name}, {counted(found.circles, 'circle')}"]
    else:
        lines = [f"damaged: {found.name}; {counted(found.circles, 'circle')} can be read"]
        lines += [f"  {line}" for line in found.damage]
        lines += [f"  {name} cannot be read: {why}" for name, why in found.unreadable[:MOST_LOST]]
        if (more := len(found.unreadable) - MOST_LOST) > 0:
            lines.append(f"  and {more} more")
    if saved:
        lines.append(
            f"saved {counted(saved.circles, 'circle')} and all other rows that can be read to {new};"
            f" FIRECIRCLE_STORE={new} uses it"
        )
    elif not found.sound:
        lines.append("`firecircle doctor --store --salvage new.db` copies what can be read into a new store")
    return lines
