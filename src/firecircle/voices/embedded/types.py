"""What the readers say about each pattern type: the table in `types.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources


@cache
def type_table() -> dict[str, dict[str, str]]:
    """What is said of each type, by its name."""
    text = resources.files(__package__).joinpath("types.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def does(pattern: str) -> str:
    """What words of this type do, as the end of a sentence that begins with them."""
    return type_table().get(pattern, {}).get("does", f"show {pattern.replace('_', ' ')}")
