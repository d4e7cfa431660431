"""The prompts as text files, one set in a folder.

`v2` is in use. `v1` has the wording before it and is kept as an arm to compare with. A placeholder that
begins with an underscore, such as `${_checks}`, includes that file: a shared sentence exists once.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import resources
from string import Template
from typing import Literal

from firecircle.errors import ConfigError

TemplateSet = Literal["v1", "v2"]

_INCLUDED = re.compile(r"\$\{(_\w+)\}")
_PLACEHOLDER_LINE = re.compile(r"\$\{(\w+)\}")


@cache
def template(name: str, of: str = "v2", package: str = "firecircle.circle.templates") -> str:
    """The text of a prompt template with the files it includes, which are always those of a circle's set."""
    try:
        text = _texts(of, package)[f"{name}.txt"].strip("\n")
    except KeyError:
        raise ConfigError(None, f"prompt template {name}.txt is missing", "reinstall firecircle") from None
    version = of if of == "v1" else "v2"
    return _INCLUDED.sub(lambda included: template(included[1], version), text)


@cache
def _texts(of: str, package: str) -> dict[str, str]:
    """All of a set at once: in the middle of a dialogue a file might not be opened any more."""
    places = resources.files(package).joinpath(of).iterdir()
    return {place.name: place.read_text("utf-8") for place in places if place.name.endswith(".txt")}


def render(text: str, **values: str) -> str:
    """Fill a template in one pass, so that braces or names inside a value stay what they are.

    A line that holds nothing but an empty value goes, together with the blank line after it.
    """
    empty = frozenset(name for name, value in values.items() if value == "")
    parts = _parts_of(text, empty)
    return "".join([values.get(name, words) if name else words for words, name in parts])


@lru_cache(maxsize=64)
def _parts_of(text: str, empty: frozenset[str]) -> tuple[tuple[str, str | None], ...]:
    """A template in parts: plain words, and placeholders as they are spelled with the name in each.

    The lines of those that are empty are left out.
    """
    lines: list[str] = []
    skip_blank = False
    for line in text.strip("\n").split("\n"):
        alone = _PLACEHOLDER_LINE.fullmatch(line.strip())
        if alone and alone[1] in empty:
            skip_blank = True
            continue
        if not (skip_blank and not line.strip()):
            lines.append(line)
        skip_blank = False
    kept = "\n".join(lines)
    parts: list[tuple[str, str | None]] = []
    end = 0
    for found in Template.pattern.finditer(kept):
        name = found["named"] or found["braced"]
        parts += [(kept[end : found.start()], None), ("$" if found["escaped"] else found[0], name)]
        end = found.end()
    return (*parts, (kept[end:], None))
