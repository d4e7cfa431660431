"""What an untrusted settings file may change, and which files the user trusts.

A `firecircle.toml` in the working folder may come from a stranger's repository. Until the user trusts its
exact content, only `allowed_part` of it applies.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from firecircle.errors import ConfigError
from firecircle.files import read_regular, stays_in, write_whole

LARGEST_RECORD = 10_000_000


def _patterns(value: Any, _: Path) -> bool:
    return isinstance(value, list) and all(isinstance(pattern, str) for pattern in value)


def _file_inside(value: Any, folder: Path) -> bool:
    if not isinstance(value, str) or not stays_in(folder, value):
        return False
    path = os.path.join(folder, value)
    return os.path.isfile(path) or not os.path.lexists(path)


def _amount(value: Any, _: Path) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _number(value: Any, folder: Path) -> bool:
    return isinstance(value, int) and _amount(value, folder)


ALLOWED: Mapping[tuple[str, str], Callable[[Any, Path], bool]] = {
    ("check", "system"): _patterns,
    ("check", "skill"): _patterns,
    ("check", "document"): _patterns,
    ("check", "user"): _patterns,
    ("check", "ignore"): _patterns,
    ("check", "baseline"): _file_inside,
    ("circle", "budget_usd"): _amount,
    ("circle", "budget_tokens"): _number,
}
"""Everything an untrusted file may set: which files of its folder `check` reads, and a lower budget.

Voices, addresses, rules, prices and the store need trust.
"""


def allowed_part(
    document: Mapping[str, Any], folder: Path
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The tables of an untrusted file that apply, and everything else by its name."""
    kept: dict[str, dict[str, Any]] = {}
    ignored: dict[str, Any] = {}
    for table, content in document.items():
        if not isinstance(content, Mapping):
            ignored[table] = content
            continue
        for key, value in content.items():
            allows = ALLOWED.get((table, key))
            if allows is not None and allows(value, folder):
                kept.setdefault(table, {})[key] = value
            else:
                ignored[f"[{table}.{key}]" if isinstance(value, Mapping) else f"[{table}] {key}"] = value
    return kept, ignored


class TrustedFiles:
    """The trusted settings files of working folders: path and digest of each."""

    def __init__(self, record: Path) -> None:
        self.record = record

    def read(self) -> dict[str, str]:
        """The SHA-256 digest of every trusted file, by path."""
        try:
            known = json.loads(read_regular(self.record, LARGEST_RECORD))
            if isinstance(known, dict) and all(isinstance(digest, str) for digest in known.values()):
                return known
            why = "is not a record of trusted files"
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as unreadable:
            why = f"cannot read it: {unreadable}"
        raise ConfigError(str(self.record), why, "delete it and trust your files again")

    def has(self, file: Path, content: bytes) -> bool:
        """Whether the user trusts exactly this content at this path."""
        return self.read().get(_place(file)) == _digest(content)

    def add(self, file: Path, content: bytes) -> None:
        """Trust a file until its content changes."""
        self._write({**self.read(), _place(file): _digest(content)})

    def remove(self, file: Path) -> bool:
        """Stop trusting a file; returns whether it was trusted."""
        known = self.read()
        if known.pop(_place(file), None) is None:
            return False
        self._write(known)
        return True

    def _write(self, known: Mapping[str, str]) -> None:
        try:
            self.record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.record, json.dumps(known, indent=2) + "\n", mode=0o600)
        except OSError as unwritable:
            raise ConfigError(str(self.record), f"cannot write it: {unwritable.strerror}") from None


def _place(file: Path) -> str:
    """The folder with its links followed. The file may be a link itself; its content counts."""
    return str(file.parent.resolve() / file.name)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
